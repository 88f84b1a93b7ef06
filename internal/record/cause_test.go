package record

import "testing"

func TestCause(t *testing.T) {
	const two = "F.F [100%]\n=== FAILURES ===\n___ test_old ___\n>   assert a == 1\nE   assert 41 == 42\n" +
		"___ TestSum.test_new[1] ___\nE   KeyError: 'a'\n\nDuring handling of the above:\nE   ValueError: b\n" +
		"=== short test summary info ===\nFAILED tests/test_a.py::TestSum::test_new - ValueError\n"
	for _, c := range []struct{ output, test, want string }{
		{two, "tests.test_a::test_old", "tests.test_a::test_old: assert 41 == 42"},
		{two, "tests.test_a.TestSum::test_new", "tests.test_a.TestSum::test_new: ValueError: b"},
		{two, "tests.test_a::test_absent", "tests.test_a::test_absent failed"},
		{"F   [100%]1 passed in 0.01s\n", "tests.test_a::test_new", "tests.test_a::test_new failed"},
		{"___ ERROR collecting tests/test_a.py ___\nE   ImportError: no x\n", "tests.test_a",
			"tests.test_a: ImportError: no x"},
		{"___ ERROR collecting tests/test_t001.py ___\nE   ImportError: no x\n", "tests/test_t001.py::test_a",
			"tests/test_t001.py::test_a: ImportError: no x"},
		{"ImportError while loading conftest\nE   KeyError: 1\n" +
			"FAILED: these acceptance tests did not run: a.py::test_a",
			"a.py::test_a", "a.py::test_a: KeyError: 1"},
		{"1 passed\nFAILED: these acceptance tests did not run: a.py::test_a", "a.py::test_a",
			"FAILED: these acceptance tests did not run: a.py::test_a"},
		{"--- FAIL: TestOld (0.00s)\n    a_test.go:1: no\n--- FAIL: TestNew (0.00s)\n    a_test.go:9: got 3\n",
			"example.org/m::TestNew", "TestNew: a_test.go:9: got 3"},
		{"sh: not found\n", "", "sh: not found"},
	} {
		r := ValidatorResult{Output: &c.output}
		if c.test != "" {
			r.Tests = &Tests{Names: []string{c.test}}
		}
		if got := r.Cause(); got != c.want {
			t.Errorf("%s: %q, want %q", c.test, got, c.want)
		}
	}
}
