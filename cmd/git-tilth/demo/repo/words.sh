#!/bin/sh
# words.sh COMMAND < text
case "$1" in
*) echo "words.sh: unknown command: $1" >&2; exit 2 ;;
esac
