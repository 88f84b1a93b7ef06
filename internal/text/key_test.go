package text

import (
	"slices"
	"strings"
	"testing"
)

func TestIsKey(t *testing.T) {
	for _, name := range strings.Fields(`KEY API_KEY OPENAI_API_KEY TILTH_API_KEY APIKEY MY_APIKEYS AWS_ACCESS_KEY_ID
		AWS_SECRET_ACCESS_KEY GITHUB_TOKEN TOKENS X_API_KEYS npm_config_authToken npm_config__authtoken NPM_AUTH_TOKEN
		StripeSecretKey stripeApiKey CLIENTSECRET DB_PASS DB_PASSWORD PASSWORD PGPASSWORD MYSQL_PASSWD SSH_PASSPHRASE
		RESTIC_PASSWORD2 KEY_2 API_KEY2 GOOGLE_APPLICATION_CREDENTIALS MY_CREDENTIAL CREDS AZURE_DEVOPS_EXT_PAT GH_PATS
		SSH_AUTH_SOCK BASIC_AUTH OAUTH SESSION_COOKIE a-token git.token CI_JOB_JWT VAULT_TOKEN_FILE passwords
		CI_REGISTRY_PASSWORD TWINE_PASSWORD HOMEBREW_GITHUB_API_TOKEN SENTRY_AUTH_TOKEN`) {
		if !IsKey(name) {
			t.Errorf("%s is taken for no key", name)
		}
	}
	for _, name := range append(strings.Fields(`PATH GOPATH PYTHONPATH NODE_PATH XDG_DATA_DIRS HOME PWD OLDPWD COMPAT
		POSIXLY_CORRECT KEYBOARD KEYMAP XKB_LAYOUT MONKEY TURKEY AUTHOR AUTHORITY XAUTHORITY GIT_AUTHOR_NAME
		GIT_AUTHOR_EMAIL GIT_AUTHOR_DATE GIT_COMMITTER_NAME PASSENGER COMPASS PASSIVE BYPASS PATTERN PATCH GIT_PATCH_X
		TOKENIZERS_PARALLELISM SECRETARY GNOME_KEYRING_CONTROL SSH_AGENT_PID SSH_ASKPASS GPG_TTY LANG LC_ALL TERM
		COLORTERM LS_COLORS GIT_CONFIG_COUNT GIT_CONFIG_KEY_0 GIT_CONFIG_VALUE_12 GIT_CONFIG_PARAMETERS JAVA_HOME
		CARGO_HOME VIRTUAL_ENV CI PYTEST_ADDOPTS DISPLAY TMPDIR npm_config_cache`), "", "=", "_") {
		if IsKey(name) {
			t.Errorf("%s is taken for a key", name)
		}
	}
	for name, want := range map[string]bool{"http.extraHeader": true, "http.https://x.example/.extraheader": true,
		"credential.helper": false, "user.signingKey": false, "http.proxy": false, "tool.apiKey": true} {
		if IsKeySetting(name) != want {
			t.Errorf("IsKeySetting(%q) = %v", name, !want)
		}
	}
}

func TestPasswords(t *testing.T) {
	for s, want := range map[string][]string{
		"postgres://me:hunter2%2F@db.example/x":       {"hunter2%2F"},
		"redis://:s3cret@localhost:6379":              {"s3cret"},
		"http://u:p@proxy:3128,http://v:q@proxy":      {"p", "q"},
		"jdbc:postgresql://h/db?user=u&password=pw&x": {"pw"},
		"postgres://u:with%zz@h":                      {"with%zz"},
		"http://proxy:3128/a@b":                       nil,
		"https://example.org/x?y=1@2":                 nil,
		"git@github.com:me/it.git":                    nil,
		"ssh://git@github.com:22/me/it":               nil,
		"postgres://me@db.example:5432/x":             nil,
		"a:b@c":                                       nil,
	} {
		if got := Passwords(s); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", s, got, want)
		}
		if HoldsKey("X="+s) != (want != nil) {
			t.Errorf("HoldsKey of %s", s)
		}
	}
	if Unescaped("a%2Fb") != "a/b" || Unescaped("with%zz") != "with%zz" {
		t.Error("a password is not what is typed")
	}
}

// A credential's word is found between other words, but not within a word.
func FuzzIsKey(f *testing.F) {
	f.Add("MY", "X")
	f.Add("", "9")
	f.Fuzz(func(t *testing.T, before, after string) {
		for _, word := range strings.Fields("KEY TOKENS SECRET PASS CREDENTIALS AUTH PAT APIKEY PGPASSWORD") {
			name := before + "_" + word + "_" + after
			if !gitPair().MatchString(name) && !IsKey(name) {
				t.Fatalf("%q is taken for no key", name)
			}
		}
		for _, word := range []string{"PATH", "COMPAT", "KEYBOARD", "AUTHOR", "PASSENGER", "MONKEY"} {
			if name := before + "_" + word + "_" + after; IsKey(name) != (IsKey(before) || IsKey(after)) &&
				!gitPair().MatchString(before+"_x") && !gitPair().MatchString(before) && !gitPair().MatchString(after) {
				t.Fatalf("%q is taken for a key by %s", name, word)
			}
		}
	})
}
