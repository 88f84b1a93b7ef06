# Completion for `git tilth` in bash. git's own completion calls _git_tilth, which asks git tilth for the candidates.

_git_tilth() {
	local i first=1 line candidates=()
	for ((i = 1; i < cword; i++)); do
		[ "${words[i]}" = tilth ] && first=$((i + 1)) && break
	done
	while IFS= read -r line; do
		candidates+=("$line")
	done < <(git tilth complete "${words[@]:first:cword-first}" "$cur" 2>/dev/null)
	COMPREPLY=()
	for line in "${candidates[@]}"; do
		if [ "${#candidates[@]}" -gt 1 ] && [ "${COMP_TYPE:-9}" = 63 ]; then
			COMPREPLY+=("${line%%$'\t'*}  (${line#*$'\t'})") # a list for display only
		else
			COMPREPLY+=("${line%%$'\t'*} ")
		fi
	done
}
