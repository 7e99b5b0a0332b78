# Puts every barrier, fence and atomic of a kernel source behind a switch, by number:
#   CALL(...)  becomes  (NDT_RACE_FAULT(N), CALL(...))
# Reads one file; `list` gets a line "N FILE:LINE CALL" for each, `first` is the first number. Prints the new source.
# Branches that the emulation does not compile stay as they are. Calls to functions of the kernels whose names say
# barrier or fence count as well as the calls within those functions.
{ text = text $0 "\n" }

function is_planted(word) {
    return word ~ /^(__syncthreads|__threadfence|__syncwarp)/ || word ~ /^atomic[A-Z]/ ||
        word ~ /^emulated_(cluster_barrier|mbarrier_)/ ||
        (word ~ /barrier|fence/ && word !~ /^emulated_/ && word ~ /^[a-z_0-9]+$/)
}

function emit(length_now) {
    out = out substr(text, at, length_now)
    at += length_now
}

# Length of the call that begins at `at`, with `word` in front of its parenthesis.
function call_length(word,    i, depth, c) {
    for (i = at + length(word); i <= length(text); i++) {
        c = substr(text, i, 1)
        depth += (c == "(") - (c == ")")
        if (c == ")" && depth == 0)
            return i + 1 - at
    }
    return 0
}

function line_number(    before) {
    before = substr(text, 1, at)
    return gsub(/\n/, "", before) + 1
}

# "#if" of the emulation: only the branch that it compiles.
function directive(line) {
    if (line ~ /^#[ ]*if/) {
        depth_now++
        if (line ~ /EMULATED_CUDA_RUNTIME_H/)
            emulated_at = depth_now
    } else if (line ~ /^#[ ]*(else|elif)/ && depth_now == emulated_at) {
        is_other = 1
    } else if (line ~ /^#[ ]*endif/) {
        if (depth_now == emulated_at)
            is_other = emulated_at = 0
        depth_now--
    }
}

# A declaration names a type in front of the function.
function is_call(    before) {
    before = substr(out, length(out) > 40 ? length(out) - 40 : 1)
    sub(/[ \n]+$/, "", before)
    if (before ~ /(^|[^A-Za-z_0-9])(return|else)$/)
        return 1
    return before !~ /[A-Za-z_0-9*>]$/ || before ~ /\)$/
}

END {
    at = 1
    number = first
    while (at <= length(text) && match(substr(text, at), /[A-Za-z_][A-Za-z_0-9]*|\/\*|"|\n#[^\n]*/)) {
        found = substr(text, at + RSTART - 1, RLENGTH)
        emit(RSTART - 1)
        if (found == "/*") {
            emit(index(substr(text, at), "*/") + 1)
        } else if (found == "\"") {
            emit(1)
            emit(index(substr(text, at), "\""))
        } else if (found ~ /^\n/) {
            directive(substr(found, 2))
            emit(RLENGTH)
        } else if (!is_other && is_planted(found) && substr(text, at + length(found), 1) == "(" && is_call()) {
            printf "%d %s:%d %s\n", number, name, line_number(), found >> list
            out = out "(NDT_RACE_FAULT(" number++ "), "
            emit(call_length(found))
            out = out ")"
        } else {
            emit(length(found))
        }
    }
    printf "%s%s", out, substr(text, at)
}
