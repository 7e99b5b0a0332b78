# Rows of two programs that ran in turns: awk -f pairs.awk -v name=NAME THIS-1.json OTHER-1.json THIS-2.json OTHER-2.json ...
# Prints a row of a Markdown table per measure: medians of both, the median of the ratios of the pairs, which differ by
# what happens on the machine meanwhile, their range, and a verdict: a difference counts where it is 2 % and all pairs
# but one agree. open=REASON: no verdict.
function value(line, key,    text) {
    if (!match(line, "\"" key "\": (\"[^\"]*\"|[^,}]*)"))
        return ""
    text = substr(line, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
    gsub(/"/, "", text)
    return text
}
function median(list, count,    i, j, swap, sorted) {
    for (i = 1; i <= count; i++)
        sorted[i] = list[i]
    for (i = 2; i <= count; i++)
        for (j = i; j > 1 && sorted[j] < sorted[j - 1]; j--) {
            swap = sorted[j]; sorted[j] = sorted[j - 1]; sorted[j - 1] = swap
        }
    return count % 2 ? sorted[(count + 1) / 2] : (sorted[count / 2] + sorted[count / 2 + 1]) / 2
}
function report(row,    i, n, ratios, mine, others, below, above, least, most, middle, verdict) {
    for (i = 1; i <= pairs; i++)
        if (now[row, i] > 0 && other[row, i] > 0) {
            mine[++n] = now[row, i]; others[n] = other[row, i]
            ratios[n] = now[row, i] / other[row, i]
            below += ratios[n] < 1; above += ratios[n] > 1
            least = n == 1 || ratios[n] < least ? ratios[n] : least
            most = n == 1 || ratios[n] > most ? ratios[n] : most
        }
    if (!n)
        return
    middle = median(ratios, n)
    verdict = middle <= 0.98 && below >= n - 1 ? "faster" : middle >= 1.02 && above >= n - 1 ? "slower" : "equal"
    printf "| %s | %s | %.4g | %.4g | %.3f | %.3f to %.3f | %s |\n", name, row, median(others, n), median(mine, n), middle,
        least, most, open != "" ? "open: " open : verdict
}
BEGIN { count = split("align_ms per_evaluation_us once_us evaluation_us together_ms scored_ms", measures, " ") }
FNR == 1 { file++; pairs = int((file + 1) / 2) }
/^ *\{"/ && /"backend": / {
    backend = value($0, "backend")
    sub(/( on |,).*/, "", backend)
    key = backend
    if (value($0, "points") != "") key = key ", " value($0, "points") " points"
    if (value($0, "items") != "") key = key ", " value($0, "items") " " value($0, "of")
    for (i = 1; i <= count; i++)
        if (value($0, measures[i]) ~ /^[0-9.]/) {
            row = key ": " measures[i]
            if (!(row in seen)) { seen[row] = 1; order[++rows] = row }
            if (file % 2) now[row, pairs] = value($0, measures[i])
            else other[row, pairs] = value($0, measures[i])
        }
}
END {
    for (i = 1; i <= rows; i++)
        report(order[i])
}
