package scripted

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestMain is the endpoint's process when the test binary is started as such.
func TestMain(m *testing.M) {
	if args, ok := os.LookupEnv("SCRIPTED_TEST_ARGS"); ok {
		os.Exit(Main(strings.Fields(args)))
	}
	os.Exit(m.Run())
}

func process(t *testing.T, args string) (*exec.Cmd, io.WriteCloser, *bufio.Reader) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SCRIPTED_TEST_ARGS="+args)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, in, bufio.NewReader(out)
}

func TestProcess(t *testing.T) {
	dir := t.TempDir()
	script, urlFile, log := filepath.Join(dir, "s.json"), filepath.Join(dir, "url"), filepath.Join(dir, "log")
	if err := os.WriteFile(script, []byte(`{"self_improve":[{"content":"over there"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"signal", "stdin"} {
		cmd, in, out := process(t, "--stdin --url-file "+urlFile+" --log "+log+" "+script)
		url, err := out.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.Post(strings.TrimSpace(url)+"/chat/completions", "application/json",
			strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		answer, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if !strings.Contains(string(answer), "over there") {
			t.Errorf("%s", answer)
		}
		if how == "signal" {
			cmd.Process.Signal(syscall.SIGTERM)
		} else {
			in.Close()
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s: %v", how, err)
		}
		if written, _ := os.ReadFile(urlFile); string(written) != url {
			t.Errorf("url file %q, want %q", written, url)
		}
	}
	if lines, _ := os.ReadFile(log); strings.Count(string(lines), "\n") != 2 {
		t.Errorf("log %s", lines)
	}
}

func TestProcessErrors(t *testing.T) {
	for args, code := range map[string]int{"": 2, "--nonsense x": 2, "a b": 2, filepath.Join(t.TempDir(), "none.json"): 1} {
		if got := Main(strings.Fields(args)); got != code {
			t.Errorf("%q: exit %d, want %d", args, got, code)
		}
	}
}
