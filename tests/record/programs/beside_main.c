/* What a program finds around itself, before and after it ran: compile it with -Dmain=program. Each process writes to a file of its own. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <locale.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#undef main
int program(int argc, char **argv);

static FILE *facts;

/* Writes a line: an aspect, and what is so. */
void fact(const char *aspect, const char *format, ...)
{
    va_list arguments;
    if (!facts) return;
    fprintf(facts, "%s: ", aspect);
    va_start(arguments, format);
    vfprintf(facts, format, arguments);
    va_end(arguments);
    fputc('\n', facts);
}

static void environment(const char *when)
{
    char line[65536];
    FILE *child = popen("exec env", "r");
    while (child && fgets(line, sizeof line, child)) {
        line[strcspn(line, "\n")] = 0;
        fact("environment", "%s %s", when, line);
    }
    if (child) pclose(child);
}

static void signals(const char *when)
{
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    while (status && fgets(line, sizeof line, status))
        if (!strncmp(line, "Sig", 3) && strncmp(line, "SigQ", 4)) fact("signals", "%s %.23s", when, line);
    if (status) fclose(status);
    for (int number = 1; number < NSIG; number++) {
        struct sigaction action;
        if (sigaction(number, NULL, &action) || action.sa_handler == SIG_DFL) continue;
        fact("signals", "%s %d %s %x", when, number, action.sa_handler == SIG_IGN ? "ignored" : "caught", action.sa_flags);
    }
    struct itimerval timer;
    for (int which = 0; which < 3; which++)
        if (!getitimer(which, &timer) && timer.it_value.tv_sec) fact("signals", "%s timer %d", when, which);
    stack_t stack;
    if (!sigaltstack(NULL, &stack)) fact("signals", "%s stack %d", when, stack.ss_flags);
}

static void descriptors(const char *when)
{
    struct dirent *entry;
    DIR *directory = opendir("/proc/self/fd");
    while (directory && (entry = readdir(directory))) {
        char path[320], target[PATH_MAX] = "";
        int number = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || number == dirfd(directory) || number == fileno(facts)) continue;
        snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
        if (readlink(path, target, sizeof target - 1) < 0) continue;
        fact("descriptors", "%s %d %s %x %x", when, number, target, fcntl(number, F_GETFD), fcntl(number, F_GETFL));
    }
    if (directory) closedir(directory);
    /* The number that the next file gets. */
    int next = open("/dev/null", O_RDONLY);
    fact("descriptors", "%s next %d", when, next);
    close(next);
}

static void settings(const char *when)
{
    char text[PATH_MAX] = "";
    mode_t mask = umask(0);
    umask(mask);
    fact("settings", "%s locale %s", when, setlocale(LC_ALL, NULL));
    fact("settings", "%s umask %o directory %s priority %d", when, mask, getcwd(text, sizeof text), getpriority(PRIO_PROCESS, 0));
    for (int which = 0; which < RLIM_NLIMITS; which++) {
        struct rlimit limit;
        if (!getrlimit(which, &limit)) fact("settings", "%s limit %d %ld %ld", when, which, (long)limit.rlim_cur, (long)limit.rlim_max);
    }
    cpu_set_t cores;
    if (!sched_getaffinity(0, sizeof cores, &cores)) fact("settings", "%s cores %d", when, CPU_COUNT(&cores));
    FILE *name = fopen("/proc/self/comm", "r");
    if (name && fscanf(name, "%255s", text) == 1) fact("settings", "%s name %s", when, text);
    if (name) fclose(name);
    int threads = 0;
    DIR *directory = opendir("/proc/self/task");
    for (struct dirent *entry; directory && (entry = readdir(directory));) threads += entry->d_name[0] != '.';
    if (directory) closedir(directory);
    fact("settings", "%s threads %d", when, threads);
    fact("settings", "%s child left %d", when, waitpid(-1, NULL, WNOHANG) > 0);
}

/* Address space that the C library's allocator has taken for threads: 64 MB each, of which most is untouched. */
static void memory(const char *when)
{
    char line[512], rights[8];
    unsigned long from, to;
    int arenas = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    while (maps && fgets(line, sizeof line, maps))
        arenas += sscanf(line, "%lx-%lx %7s", &from, &to, rights) == 3 && !strcmp(rights, "---p") && to - from > 48 << 20
                  && to - from <= 64 << 20;
    if (maps) fclose(maps);
    fact("memory", "%s arenas %d", when, arenas);
}

/* Tells what there is now. */
void observe(const char *when)
{
    memory(when);
    settings(when);
    signals(when);
    descriptors(when);
    environment(when);
    if (facts) fflush(facts);
}

int main(int argc, char **argv)
{
    const char *names[] = {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"}, *rank = NULL;
    char path[64];
    for (int i = 0; i < 3 && !rank; i++) rank = getenv(names[i]);
    snprintf(path, sizeof path, "facts.%s", rank ? rank : "0");
    /* Far from the numbers that the program gets. */
    int file = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0600), high = fcntl(file, F_DUPFD_CLOEXEC, 900);
    close(file);
    facts = fdopen(high, "w");
    observe("before");
    int code = program(argc, argv);
    observe("after");
    fclose(facts);
    return code;
}
