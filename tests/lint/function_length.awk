# Prints "LINES FILE:LINE NAME" for every function, from the first line of its signature to the closing
# brace. Relies on the project's style: a function's braces stand alone in the first column (.clang-format).
FNR == 1 {
    begin = 0
    inside = 0
}
inside {
    if ($0 ~ /^}/) {
        print FNR - begin + 1, FILENAME ":" begin, name
        inside = 0
        begin = 0
    }
    next
}
/^\{/ {
    if (begin > 0 && signature ~ /\(/) {
        inside = 1
        name = signature
        sub(/\(.*/, "", name)
        sub(/.*[ *]/, "", name)
    }
    next
}
# The signature begins at the first line in the first column after something that ends.
/^[A-Za-z_]/ && begin == 0 {
    begin = FNR
    signature = ""
}
begin > 0 {
    signature = signature $0
}
/[;}]$/ || /^#/ || /^$/ || /\*\/$/ || /^\/\// {
    begin = 0
}
