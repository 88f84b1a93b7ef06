# Completion for `git tilth` in bash. git's own completion calls _git_tilth.

_git_tilth() {
	local commands="prep-feature seed plan run resume done skip retry stop reset rewind undo fork review diff take pr cleanse list show log visualize export verify replay config doctor demo"
	local i word command=
	for ((i = 1; i < cword; i++)); do
		word=${words[i]}
		case " $commands prep " in
		*" $word "*) command=$word; break ;;
		esac
	done
	if [ -z "$command" ]; then
		__gitcomp "$commands --verbose --dry-run --version"
		return
	fi
	case "$command,$cur" in
	seed,*) [ "${words[cword-1]}" = seed ] && { __gitcomp "edit lint"; return; } ;;
	prep-feature,--* | prep,--*) __gitcomp "--brief --from --base --answers --continue --force --keep-existing --dry-run"; return ;;
	run,--*) __gitcomp "--from --base --auto-resume --keep-going --no-preflight --yes --detach --wait --json --model --evaluator-model --max-iterations --max-evaluator-calls --max-minutes --max-tokens --max-cost --max-turns --strict-caps --dry-run"; return ;;
	resume,--*) __gitcomp "--fresh --continue --auto-resume --keep-going --no-preflight --detach --wait --json --model --evaluator-model --max-iterations --max-evaluator-calls --max-minutes --max-tokens --max-cost --max-turns --strict-caps --dry-run"; return ;;
	done,--* | retry,--*) __gitcomp "--message --dry-run"; return ;;
	reset,--*) __gitcomp "--to-seed --yes --dry-run"; return ;;
	rewind,--*) __gitcomp "--message --yes --dry-run"; return ;;
	fork,--*) __gitcomp "--at --label --dry-run"; return ;;
	undo,--*) __gitcomp "--yes --dry-run"; return ;;
	take,--*) __gitcomp "--onto --pick --squash --merge --dry-run"; return ;;
	pr,--*) __gitcomp "--base --draft --web --dry-run"; return ;;
	list,--*) __gitcomp "--all --json"; return ;;
	doctor,--*) __gitcomp "--fix --json --dry-run"; return ;;
	show,--* | config,--* | verify,--*) __gitcomp "--json"; return ;;
	log,--*) __gitcomp "--follow --tail --task --type --json"; return ;;
	visualize,--*) __gitcomp "--open --serve --addr"; return ;;
	replay,--*) __gitcomp "--harness"; return ;;
	export,--*) __gitcomp "--otlp"; return ;;
	esac
	case "$command" in
	rewind) __gitcomp_nl "$(printf 'seed\n'; git tilth show 2>/dev/null | sed -n 's/, /\n/g; s/^rewind to\t//p')" ;;
	resume | stop | plan | reset | undo | fork | review | diff | take | pr | cleanse | show | log | visualize | export | verify | replay | seed)
		__gitcomp_nl "$(git tilth list 2>/dev/null | cut -f1)" ;;
	esac
}
