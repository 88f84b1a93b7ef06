# Completion for `git tilth`, and for git-tilth, in fish; what may stand there, git tilth says itself.

function __git_tilth_candidates
    set -l words (commandline -opc)
    set -l first 2
    if test "$words[1]" = git
        set -l at (contains -i -- tilth $words); or return
        set first (math $at + 1)
    end
    set -l current (commandline -ct)
    if test (count $words) -ge $first
        git tilth complete $words[$first..-1] "$current" 2>/dev/null
    else
        git tilth complete "$current" 2>/dev/null
    end
end

complete -c git -n 'contains -- tilth (commandline -opc)' -a '(__git_tilth_candidates)'
complete -c git-tilth -a '(__git_tilth_candidates)'
