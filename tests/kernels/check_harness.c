#include "check_harness.h"

#include <stdio.h>
#include <string.h>

static int passed, failed;

void check_expect(int good, const char *what, const char *text)
{
    printf("%s %s%s%s\n", good ? "ok  " : "FAIL", what, *text ? ": " : "", text);
    *(good ? &passed : &failed) += 1;
}

int check_main(int argc, char **argv, const struct check_case *cases)
{
    const int lists = argc == 2 && strcmp(argv[1], "--list") == 0;
    const char *prefix = argc == 3 && strcmp(argv[1], "--case") == 0 ? argv[2] : "";
    int chosen = 0;
    if (argc > 1 && !lists && !*prefix) {
        fprintf(stderr, "usage: %s [--list | --case PREFIX]\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0); /* a fault in a kernel may end the program */
    for (const struct check_case *item = cases; item->name; item++) {
        if (strncmp(item->name, prefix, strlen(prefix)) != 0)
            continue;
        chosen++;
        if (lists)
            printf("%s\n", item->name);
        else if (item->run)
            item->run();
        else
            item->run_with(item->text, item->value);
    }
    if (!lists)
        printf("%d passed, %d failed\n", passed, failed);
    return chosen == 0 ? 2 : failed > 0;
}
