package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/git-tilth/git-tilth/internal/jsonl"
)

func TestLooksSecret(t *testing.T) {
	for name, want := range map[string]bool{
		"TILTH_API_KEY": true, "OPENAI_API_KEY": true, "GITHUB_TOKEN": true, "AWS_SECRET_ACCESS_KEY": true,
		"DB_PASSWORD": true, "PGPASSWORD": true,
		"npm_config_authToken": true, "MY_CREDENTIALS": true, "SSH_PASSPHRASE": true, "StripeSecretKey": true,
		"GOOGLE_APPLICATION_CREDENTIALS": true, "X_API_KEYS": true, "AWS_ACCESS_KEY_ID": true,
		"PATH": false, "HOME": false, "KEYBOARD": false, "MONKEY": false, "SSH_AUTH_SOCK": false,
		"TOKENIZERS_PARALLELISM": false, "SSH_KEY_PATH": false,
		"API_KEY_FILE": false, "PASSENGER": false, "COMPASS": false, "": false,
	} {
		if looksSecret(name) != want {
			t.Errorf("looksSecret(%q) = %v", name, !want)
		}
	}
}

func TestRedactorTakesWhatLooksLikeACredential(t *testing.T) {
	r := NewRedactor([]string{
		"TILTH_API_KEY=sk-12345678", "SHORT_TOKEN=abc", "PATH=/usr/bin:/bin", "MAX_TOKENS=12345678",
		"OLLAMA_API_KEY=not-needed",
		"DATABASE_URL=postgres://me:hunter2%2Fhunter2@db.example/x", "GIT_CONFIG_COUNT=2", "GIT_CONFIG_KEY_0=http.extraHeader",
		"GIT_CONFIG_VALUE_0=Authorization: basic Zm9vYmFy", "GIT_CONFIG_KEY_1=user.email",
		"GIT_CONFIG_VALUE_1=someone@example.org",
		"DEPLOY_KEY=-----BEGIN KEY-----\nAAAAB3NzaC1yc2EAAAADAQABAAABgQ\nbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n-----END " +
			"KEY-----\n", "BROKEN", "=x",
		"NESTED_SECRET=sk-12345678-and-more",
	}, map[string]string{"worker key": "given1"})
	for in, want := range map[string]string{
		"nothing here, not-needed 12345678 user.email someone@example.org /usr/bin:/bin abc": "",
		"key sk-12345678.":                    "key [redacted:TILTH_API_KEY].",
		"sk-12345678-and-more":                "[redacted:NESTED_SECRET]",
		"sk-12345678sk-12345678":              "[redacted:TILTH_API_KEY][redacted:TILTH_API_KEY]",
		"given1":                              "[redacted:worker_key]",
		"p=hunter2/hunter2 hunter2%2Fhunter2": "p=[redacted:DATABASE_URL] [redacted:DATABASE_URL]",
		"Authorization: basic Zm9vYmFy":       "[redacted:GIT_CONFIG_VALUE_0]",
		"+  bbbbbbbbbbbbbbbbbbbbbbbbbbbb":     "+  [redacted:DEPLOY_KEY]",
		"-----BEGIN KEY-----":                 "",
	} {
		if want == "" {
			want = in
		}
		if got := r.String(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	var none *Redactor
	if none.String("x") != "x" || string(none.JSON([]byte(`{"a":1}`))) != `{"a":1}` {
		t.Error("a nil Redactor changed something")
	}
}

func TestRedactJSON(t *testing.T) {
	const secret = "p/a\"s\\s<w>ö𝄞&rd\n2"
	r := NewRedactor([]string{"A_SECRET=" + secret, "PIN_TOKEN=1234567890123456", "N_TOKEN=nabcdefgh",
		"ESC_TOKEN=tab\there\""}, nil)
	for name, write := range map[string]func(any) []byte{
		"go":       func(v any) []byte { b, _ := json.Marshal(v); return b },
		"plain":    func(v any) []byte { b, _ := jsonl.Encode(v); return b },
		"slashes":  func(v any) []byte { b, _ := jsonl.Encode(v); return bytes.ReplaceAll(b, []byte("/"), []byte(`\/`)) },
		"ascii":    func(v any) []byte { b, _ := jsonl.Encode(v); return []byte(asciiJSON(string(b))) },
		"indented": func(v any) []byte { b, _ := json.MarshalIndent(v, "", "  "); return b },
	} {
		args := string(write(map[string]any{"inner": secret}))
		in := write(map[string]any{"a": "x " + secret + " y", "n": int64(1234567890123456), "args": args,
			"plain": "\nabcdefgh", "tab": "tab\there\""})
		out := r.JSON(in)
		var got map[string]any
		if err := json.Unmarshal(out, &got); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
			continue
		}
		var inner map[string]any
		if err := json.Unmarshal([]byte(got["args"].(string)), &inner); err != nil {
			t.Fatal(err)
		}
		want := map[string]any{"a": "x [redacted:A_SECRET] y", "n": 1234567890123456.0, "args": got["args"],
			"plain": "\nabcdefgh", "tab": "[redacted:ESC_TOKEN]"}
		if !reflect.DeepEqual(got, want) || inner["inner"] != "[redacted:A_SECRET]" {
			t.Errorf("%s: %s\nof %s", name, out, in)
		}
	}
	clean := []byte(`{"a":"nothing"}`)
	if out := r.JSON(clean); &out[0] != &clean[0] {
		t.Error("a text without secrets was copied")
	}
}

func FuzzRedactJSON(f *testing.F) {
	f.Add("secret-value", `{"a":"secret-value","b":["\u0073ecret-value"]}`)
	f.Add("\\n\"\"{}:,", `{"\\n\"\"{}:,":1}`)
	f.Add("12345678901234567", `{"a":12345678901234567}`)
	f.Fuzz(func(t *testing.T, value, text string) {
		r := NewRedactor(nil, map[string]string{"K": value})
		if !json.Valid([]byte(text)) {
			r.JSON([]byte(text))
			return
		}
		out := r.JSON([]byte(text))
		if !json.Valid(out) {
			t.Fatalf("%q in %s made %s", value, text, out)
		}
		if len(r.forms) == 0 || !utf8.ValidString(value) || strings.ContainsAny(value, "[]:") {
			return
		}
		dec := json.NewDecoder(bytes.NewReader(out))
		for {
			token, err := dec.Token()
			if err != nil {
				return
			}
			if s, ok := token.(string); ok && strings.Contains(s, strings.TrimSpace(value)) {
				t.Fatalf("%q is still in %q of %s", value, s, out)
			}
		}
	})
}

func BenchmarkRedact(b *testing.B) {
	var environ []string
	for i := range 20 {
		environ = append(environ, fmt.Sprintf("SERVICE_%d_TOKEN=ghp_%032d/+=", i, i))
	}
	r := NewRedactor(environ, nil)
	line := []byte(`{"a":"` + strings.Repeat(`func main() {\n\treturn a.b(c)\n}\n`, 500) + `"}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		r.JSON(line)
	}
}

// A secret at the cut of a tool's result is redacted before the cut.
func TestPreviewHoldsNoPartOfASecret(t *testing.T) {
	path := filepath.Join(t.TempDir(), "events.jsonl")
	secret := `p"ss\w0rd-and-more`
	r, err := Open(path, Options{Redact: NewRedactor([]string{"DB_PASSWORD=" + secret}, nil)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for before := previewChars - len(secret); before <= previewChars; before++ {
		said := strings.Repeat("x", before) + secret + strings.Repeat("y", 100)
		if err := r.Append(&ToolResult{Tool: "bash", Preview: said}); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(data), `p\"`) || !strings.Contains(string(data), " more]") {
		t.Errorf("%s %v", data, err)
	}
}
