#include "bench_tiles.h"

#include "ndt_io/output_file.h"

static double mib(size_t bytes)
{
    return (double)bytes / 1048576.0;
}

void bench_tiles_print(const struct bench_tiles *tiles, FILE *file)
{
    fprintf(file,
            "a drive across a folder of tiles; times in ms, memory in MiB\n"
            "%7s %7s %7s | %7s %8s %6s | %7s %7s %7s %7s %7s %7s | %6s %6s %6s %6s %6s %6s\n",
            "tiles", "tile m", "radius", "list", "open", "reads", "changes", "moved", "reads", "median", "p95",
            "max", "map", "sums", "start", "opened", "most", "peak");
    for (size_t i = 0; i < tiles->count; i++) {
        const struct bench_tiles_row *row = &tiles->rows[i];
        fprintf(file, "%7zu %7g %7g | %7.1f %8.1f %6llu | %7llu %7llu %7llu %7.1f %7.1f %7.1f |", row->tiles,
                row->tile_m, row->radius_m, row->list_ms, row->open_ms, (unsigned long long)row->open_reads,
                (unsigned long long)row->changes, (unsigned long long)row->moved, (unsigned long long)row->reads,
                row->change_median_ms, row->change_p95_ms, row->change_max_ms);
        fprintf(file, " %6.1f %6.1f %6.1f %6.1f %6.1f %6.1f\n", mib(row->most_map_bytes), mib(row->most_sums_bytes),
                mib(row->start_rss), mib(row->open_rss), mib(row->most_rss), mib(row->peak_rss));
    }
}

static void write_row(FILE *file, const struct bench_tiles_row *row)
{
    fprintf(file, "{\"tiles\": %zu, \"tile_points\": %zu, \"tile_m\": %.9g, \"radius_m\": %.9g, ", row->tiles,
            row->tile_points, row->tile_m, row->radius_m);
    fprintf(file, "\"list_ms\": %.9g, \"open_ms\": %.9g, \"open_tiles\": %llu, \"open_reads\": %llu, ",
            row->list_ms, row->open_ms, (unsigned long long)row->open_tiles, (unsigned long long)row->open_reads);
    fprintf(file, "\"changes\": %llu, \"moved\": %llu, \"reads\": %llu, ", (unsigned long long)row->changes,
            (unsigned long long)row->moved, (unsigned long long)row->reads);
    fprintf(file, "\"change_median_ms\": %.9g, \"change_p95_ms\": %.9g, \"change_max_ms\": %.9g, ",
            row->change_median_ms, row->change_p95_ms, row->change_max_ms);
    fprintf(file, "\"most_tiles\": %llu, \"most_points\": %llu, ", (unsigned long long)row->most_tiles,
            (unsigned long long)row->most_points);
    fprintf(file, "\"most_map_bytes\": %zu, \"most_sums_bytes\": %zu, \"start_rss\": %zu, \"open_rss\": %zu, ",
            row->most_map_bytes, row->most_sums_bytes, row->start_rss, row->open_rss);
    fprintf(file, "\"most_rss\": %zu, \"peak_rss\": %zu}", row->most_rss, row->peak_rss);
}

enum ndt_status bench_tiles_json(const struct bench_tiles *tiles, const char *path, struct ndt_error *err)
{
    struct ndt_output out;
    enum ndt_status status = ndt_output_open(&out, path, err);
    if (status != NDT_OK)
        return status;
    fputs("{\"tiles\": [", out.file);
    for (size_t i = 0; i < tiles->count; i++) {
        fputs(i ? ",\n  " : "\n  ", out.file);
        write_row(out.file, &tiles->rows[i]);
    }
    fputs("]}\n", out.file);
    return ndt_output_commit(&out, err);
}
