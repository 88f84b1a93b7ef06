# Completion for `git tilth`, and for git-tilth, in fish; what may stand there, git tilth says itself.

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

# Fish loads what is in vendor_completions.d for a command that is typed, which is git: this file is read as it starts.
complete -c git -n 'test (count (commandline -opc)) -eq 1' -a tilth -d 'run a coding agent over a list of tasks'
complete -c git -f -n 'contains -- tilth (commandline -opc)' -a '(__git_tilth_candidates)'
complete -c git-tilth -f -a '(__git_tilth_candidates)'
