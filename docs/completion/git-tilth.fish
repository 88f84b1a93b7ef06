# Completion for `git tilth`, and for git-tilth, in fish. It asks git tilth for the candidates.

function __git_tilth_candidates
    set -l words (commandline -opc)
    set -l first 2
    if test "$words[1]" = git
        set -l at (contains -i -- tilth $words); or return
        set first (math $at + 1)
    end
    set -l current (commandline -ct)
    set -l before
    test (count $words) -ge $first; and set before $words[$first..-1]
    set -l found (git tilth complete $before "$current" 2>/dev/null)
    if set -q found[1]
        printf '%s\n' $found
    else
        __fish_complete_path "$current"
    end
end

# Fish reads vendor_completions.d when the user types a command, here git. It reads this file at its start.
complete -c git -n 'test (count (commandline -opc)) -eq 1' -a tilth -d 'run a coding agent over a list of tasks'
complete -c git -f -n 'contains -- tilth (commandline -opc)' -a '(__git_tilth_candidates)'
complete -c git-tilth -f -a '(__git_tilth_candidates)'
