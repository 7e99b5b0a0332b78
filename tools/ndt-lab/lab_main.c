/* ndt-lab: measures what is in the product against what is not; see lab.h and tools/lab. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab.h"
#include "ndtd/options.h"

/* Exit codes, as of every program of the house. */
enum { DONE = 0, USAGE = 2, FAILED = 3 };

const struct lab_experiment lab_experiments[] = {
    {"vector-width", lab_vector_width},
    {"threads", lab_threads},
    {"spin", lab_spin},
    {"pinning", lab_pinning},
    {"prefetch", lab_prefetch},
    {"order", lab_order},
    {"lists", lab_lists},
    {"layout", lab_layout},
    {"accumulation", lab_accumulation},
    {"fusing", lab_fusing},
    {"huge-pages", lab_huge_pages},
    {"solve", lab_solve},
    {"batch", lab_batch},
    {"chunking", lab_chunking},
    {"tiles", lab_tiles},
    {"cost", lab_cost},
    {"roofline", lab_roofline},
    {"count", lab_count},
    {NULL, NULL},
};

static void help(void)
{
    printf("usage: ndt-lab EXPERIMENT [options]\n\n"
           "Measures one experiment and prints lines of CSV: experiment,case,variant,role,unit,samples. tools/lab\n"
           "runs them all and writes the report.\n\n"
           "  --map FILE         the prior map\n"
           "  --bag BAG          scans with their truth\n"
           "  --backend NAME     of `batch` (cpu)\n"
           "  --folder DIR       scratch space of `tiles`\n"
           "  --seed N           of everything that is random (1)\n"
           "  --repetitions N    1 .. %d (21)\n"
           "  --quick            small sizes, only to see that it runs\n"
           "  --set KEY=VALUE    one option of ndtd; may be repeated\n"
           "  --help             this text\n\nExperiments:",
           LAB_MAX_REPETITIONS);
    for (const struct lab_experiment *e = lab_experiments; e->name; e++)
        printf(" %s", e->name);
    printf("\nExit codes: 0 done, 2 usage, 3 failure while running.\n");
}

static enum ndt_status set(struct lab *lab, const char *text, struct ndt_error *err)
{
    char name[128];
    const char *equals = strchr(text, '=');
    if (!equals || (size_t)(equals - text) >= sizeof(name))
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--set %.100s: key=value is wanted", text);
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    return ndtd_option_set_text(&lab->settings, name, equals + 1, err);
}

static enum ndt_status number(const char *flag, const char *text, uint64_t least, uint64_t most, uint64_t *out,
                              struct ndt_error *err)
{
    char *end;
    errno = 0;
    *out = strtoull(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || *out < least || *out > most)
        return ndt_fail(err, NDT_ERR_ARGUMENT, "--%s %.60s: a number from %llu to %llu is wanted", flag, text,
                        (unsigned long long)least, (unsigned long long)most);
    return NDT_OK;
}

static enum ndt_status take(struct lab *lab, int code, const char *text, struct ndt_error *err)
{
    uint64_t value;
    enum ndt_status status;
    switch (code) {
    case 'm':
        return ndtd_option_set_text(&lab->settings, "map.path", text, err);
    case 'b':
        lab->bag = text;
        return NDT_OK;
    case 'k':
        lab->backend = text;
        return NDT_OK;
    case 'f':
        lab->folder = text;
        return NDT_OK;
    case 'q':
        lab->quick = 1;
        return NDT_OK;
    case 's':
        return number("seed", text, 0, UINT64_MAX, &lab->seed, err);
    case 'r':
        status = number("repetitions", text, 1, LAB_MAX_REPETITIONS, &value, err);
        lab->repetitions = status == NDT_OK ? (int)value : 1;
        return status;
    default:
        return set(lab, text, err);
    }
}

static enum ndt_status parse(struct lab *lab, int argc, char **argv, int *wants_help, struct ndt_error *err)
{
    static const struct option flags[] = {{"map", 1, NULL, 'm'},     {"bag", 1, NULL, 'b'},
                                          {"backend", 1, NULL, 'k'}, {"folder", 1, NULL, 'f'},
                                          {"seed", 1, NULL, 's'},    {"repetitions", 1, NULL, 'r'},
                                          {"quick", 0, NULL, 'q'},   {"set", 1, NULL, 'o'},
                                          {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    enum ndt_status status = NDT_OK;
    opterr = 0;
    for (int code; status == NDT_OK && (code = getopt_long(argc, argv, ":h", flags, NULL)) != -1;) {
        *wants_help |= code == 'h';
        if (code == ':' || code == '?')
            status = ndt_fail(err, NDT_ERR_ARGUMENT, "%.100s: %s; --help explains", argv[optind - 1],
                              code == ':' ? "its value is missing" : "not known");
        else if (code != 'h')
            status = take(lab, code, optarg, err);
    }
    if (status == NDT_OK && !*wants_help && optind != argc - 1)
        status = ndt_fail(err, NDT_ERR_ARGUMENT, "the name of one experiment is wanted; --help lists them");
    return status == NDT_OK ? ndtd_settings_finish(&lab->settings, err) : status;
}

static enum ndt_status run(const struct lab *lab, const char *name, struct ndt_error *err)
{
    for (const struct lab_experiment *e = lab_experiments; e->name; e++)
        if (strcmp(e->name, name) == 0)
            return e->run(lab, err);
    return ndt_fail(err, NDT_ERR_ARGUMENT, "there is no experiment '%.60s'; --help lists them", name);
}

int main(int argc, char **argv)
{
    static struct lab lab = {.seed = 1, .repetitions = 21, .backend = "cpu"};
    struct ndt_error err = {""};
    int wants_help = 0;
    ndtd_settings_default(&lab.settings);
    enum ndt_status status = parse(&lab, argc, argv, &wants_help, &err);
    if (status == NDT_OK && wants_help) {
        help();
        return DONE;
    }
    if (status == NDT_OK)
        status = run(&lab, argv[optind], &err);
    if (status == NDT_OK && fflush(stdout) == 0 && !ferror(stdout))
        return DONE;
    fprintf(stderr, "ndt-lab: %s\n", status == NDT_OK ? "standard output cannot be written" : err.text);
    return status == NDT_ERR_ARGUMENT ? USAGE : FAILED;
}
