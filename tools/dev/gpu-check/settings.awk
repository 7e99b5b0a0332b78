# What ndt-bench batch and overheads say about batches, the queue and uploads: awk -f settings.awk batch.json overheads.json
# Prints rows of a Markdown table: setting, figures, verdict. open=REASON: no verdict.
function value(line, key,    text) {
    if (!match(line, "\"" key "\": (\"[^\"]*\"|[^,}]*)"))
        return ""
    text = substr(line, RSTART + length(key) + 4, RLENGTH - length(key) - 4)
    gsub(/"/, "", text)
    return text
}
function put(setting, figures, verdict) {
    printf "| %s | %s | %s |\n", setting, figures == "" ? "-" : figures,
        open != "" ? "open: " open : figures == "" ? "open: not measured" : verdict
}
!/"backend": "cuda/ { next }
/"items": / && /"backend": "[a-z-]* resident[ ",]/ {
    items = value($0, "items"); us = 1e3 * value($0, "together_ms") / items
    if (value($0, "of") == "guesses" || items == 1) {
        sizes = sizes (sizes == "" ? "" : ", ") sprintf("%d: %.4g us", items, us)
        if (!best_us || us < best_us) { best_us = us; best = items }
    } else if (items <= 8) {
        ratio = value($0, "alone_ms") / value($0, "together_ms")
        queue = queue (queue == "" ? "" : ", ") sprintf("%d scans: %.2f times as fast", items, ratio)
        deepest = ratio > 1.02 ? items : deepest
    }
}
/"stage_us": / && !staged && value($0, "points") >= least {
    stage = value($0, "stage_us"); upload = value($0, "upload_us"); pageable = value($0, "pageable_us")
    evaluation = value($0, "evaluation_us")
    if (pageable > 0) {
        staged = sprintf("%d points: %.4g us to copy and %.4g us to send, %.4g us from pageable memory", value($0, "points"),
            stage, upload, pageable)
        hidden = sprintf("%d points: an upload takes %.4g us, an evaluation %.4g us", value($0, "points"), upload, evaluation)
    }
}
END {
    put("queue depth", queue, deepest ? "waiting scans pay when aligned together, up to " deepest : "a deeper queue does not pay")
    put("batch size", sizes, best " per launch is best per item")
    put("staging in pinned memory", staged, stage + upload < pageable ? "pays" : "does not pay")
    put("streams, prefetch of the next scan", hidden,
        upload > 0.05 * evaluation ? "could hide up to that" : "not worth a stream: below 5 % of one evaluation")
}
