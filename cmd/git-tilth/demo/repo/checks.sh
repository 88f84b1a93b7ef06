#!/bin/sh
# Runs every test; each is a shell script that fails by its exit code.
status=0
for t in tests/*.sh; do
	[ -e "$t" ] || continue
	if sh "$t"; then echo "ok   $t"; else echo "FAIL $t"; status=1; fi
done
exit $status
