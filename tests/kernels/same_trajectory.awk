# Two trajectories (TUM) side by side in one line: the second within 1 mm and 0.01 deg of the first. -v name=WHOSE
$1 != $9 { print "FAIL " name ": other stamps"; bad = 1 }
{
    m = sqrt(($2 - $10) ^ 2 + ($3 - $11) ^ 2 + ($4 - $12) ^ 2)
    a = b = 0 # squared distances of the quaternions, q and -q being the same
    for (k = 5; k <= 8; k++) { a += ($k - $(k + 8)) ^ 2; b += ($k + $(k + 8)) ^ 2 }
    half = sqrt(a < b ? a : b) / 2
    deg = 4 * atan2(half, sqrt(1 - half * half)) * 57.29577951308232
    if (m > most_m) most_m = m
    if (deg > most_deg) most_deg = deg
}
END {
    good = NR > 0 && !bad && most_m <= 0.001 && most_deg <= 0.01
    printf "%s %s: %d poses, at most %.3g m and %.3g deg from the CPU backend\n", good ? "ok  " : "FAIL", name, NR,
        most_m, most_deg
    exit !good
}
