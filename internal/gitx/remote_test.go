package gitx

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
)

// A remote with a password gets that of the user's credential helper, without a prompt.
func TestRemoteWithPassword(t *testing.T) {
	w := newWorld(t)
	write(t, w.home, "ask", "#!/bin/sh\ntouch asked\n", "helper", "#!/bin/sh\necho username=u; echo password=secret\n")
	w.restart("GIT_ASKPASS=" + filepath.Join(w.home, "ask"))
	w.sh(w.home, "init", "-q", "--bare", "served.git")
	w.sh(filepath.Join(w.home, "served.git"), "config", "http.receivepack", "true")
	backend := &cgi.Handler{Path: findGit(os.Environ()), Args: []string{"http-backend"},
		Env: []string{"GIT_PROJECT_ROOT=" + w.home, "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			rw.Header().Set("WWW-Authenticate", "Basic")
			rw.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(rw, r)
	}))
	defer server.Close()
	url := server.URL + "/served.git"
	remote := func(args ...string) error {
		c := InRepo(w.common, args...)
		c.Keys = true
		_, err := w.git.Mutate(ctx, c)
		return err
	}
	if remote("push", "--quiet", url, w.base+":refs/heads/x") == nil {
		t.Error("pushed without a password")
	}
	w.sh(w.home, "config", "--global", "credential.helper", filepath.Join(w.home, "helper"))
	must(t, remote("push", "--quiet", url, w.base+":refs/heads/x"))
	must(t, remote("fetch", "--quiet", url, "refs/heads/x:refs/fetched"))
	if asked, _ := filepath.Glob(filepath.Join(w.home, "*", "asked")); len(asked) > 0 {
		t.Error("somebody was asked: ", asked)
	}
}
