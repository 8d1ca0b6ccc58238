// Uses files in each way that the recorder knows, checks what comes back, and prints how often something was wrong. `slow MS` is a program in which
// rank 0 reads a file that gives something every so many ms, and passes it on to the others.
#define _GNU_SOURCE
#include <aio.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int failures;
#define EXPECT(what, value) ((long)(what) == (long)(value) || (++failures, printf("line %d: %s\n", __LINE__, #what)))

static void formatted(FILE *to, const char *format, ...) {
    va_list list;
    va_start(list, format);
    EXPECT(vfprintf(to, format, list), 6);
    va_end(list);
}

static void descriptors(void) {
    char buffer[4096] = "", text[] = "0123456789";
    struct iovec vector[2] = {{buffer, 3}, {buffer + 100, 4}};
    int fd, other;
    errno = 77;
    EXPECT(open("none/at.all", O_RDONLY), -1);
    EXPECT(errno, ENOENT);
    EXPECT((fd = open("of_posix", O_RDWR | O_CREAT | O_TRUNC | O_APPEND, 0640)) >= 0, 1);
    EXPECT(write(fd, text, 10), 10);
    EXPECT(lseek(fd, 2, SEEK_SET), 2);
    EXPECT(read(fd, buffer, 100), 8);
    EXPECT(memcmp(buffer, "23456789", 8), 0);
    EXPECT(read(fd, buffer, 100), 0);
    EXPECT(pread(fd, buffer, 4, 5), 4);
    EXPECT(memcmp(buffer, "5678", 4), 0);
    EXPECT(lseek(fd, 0, SEEK_SET), 0);
    EXPECT(readv(fd, vector, 2), 7);
    EXPECT(memcmp(buffer + 100, "3456", 4), 0);
    EXPECT(preadv(fd, vector, 2, 1), 7);
    EXPECT(lseek(fd, -1, SEEK_END), 9);
    EXPECT(writev(fd, vector, 2), 7);
    EXPECT(pwrite(fd, text, 5, 0), 5);
    EXPECT(pwritev(fd, vector, 2, 0), 7);
    EXPECT(fsync(fd), 0);
    EXPECT(fdatasync(fd), 0);
    EXPECT((other = dup(fd)) > fd, 1);
    EXPECT(write(other, text, 1), 1);
    EXPECT(dup2(fd, 200), 200);
    EXPECT(write(200, text, 2), 2);
    EXPECT(fcntl(fd, F_DUPFD, 300), 300);
    EXPECT(write(300, text, 3), 3);
    EXPECT(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDWR);
    EXPECT(close(300) | close(200) | close(other), 0);
    EXPECT(dprintf(fd, "%d %.2f %s", 7, 2.5, "x"), 8);
    EXPECT(ftruncate(fd, 4096), 0);
    EXPECT(flock(fd, LOCK_EX) | flock(fd, LOCK_UN), 0);
    char *mapped = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(mapped != MAP_FAILED && mapped[0] == '0', 1);
    EXPECT(munmap(mapped, 4096), 0);
    EXPECT(mmap(NULL, 4096, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED, 1);
    EXPECT(errno, EBADF);
    EXPECT(close(fd), 0);
    EXPECT(read(fd, buffer, 1), -1);
    EXPECT(errno, EBADF);
    EXPECT(close(fd), -1);
    // The number comes again, for another file.
    EXPECT((other = openat(AT_FDCWD, "of_posix.2", O_WRONLY | O_CREAT, 0600)), fd);
    EXPECT(write(other, text, 9), 9);
    EXPECT(close(other), 0);
    EXPECT(unlink("of_posix.2"), 0);
    int pair[2];
    EXPECT(pipe(pair), 0);
    EXPECT(write(pair[1], text, 6), 6);
    EXPECT(read(pair[0], buffer, 100), 6);
    EXPECT(close(pair[0]) | close(pair[1]), 0);
}

static void streams(void) {
    char buffer[100], text[] = "0123456789\n", *line = NULL;
    size_t size = 0;
    FILE *file;
    errno = 77;
    EXPECT(fopen("none/at.all", "r"), 0);
    EXPECT(errno, ENOENT);
    EXPECT((file = fopen("of_stdio", "w+")) != NULL, 1);
    EXPECT(fwrite(text, 1, 11, file), 11);
    EXPECT(fputs(text, file) >= 0, 1);
    EXPECT(fputc('c', file), 'c');
    EXPECT(putc('c', file), 'c');
    EXPECT(fprintf(file, "%d %g %s %f %d %d %d %d %Lg", 1, 0.5, "text", 3.25, 2, 3, 4, 5, 1.5L), 31);
    formatted(file, "%d %s", 12, "abc");
    EXPECT(fflush(file), 0);
    EXPECT(fseek(file, 0, SEEK_SET), 0);
    EXPECT(fgets(buffer, 100, file) == buffer, 1);
    EXPECT(strlen(buffer), 11);
    EXPECT(getline(&line, &size, file), 11);
    EXPECT(fgetc(file), 'c');
    EXPECT(getc(file), 'c');
    int number;
    double real;
    EXPECT(fscanf(file, "%d %lf", &number, &real), 2);
    EXPECT(number * 10 + (int)(real * 2), 11);
    EXPECT(fread(buffer, 5, 4, file), 4);
    EXPECT(fread(buffer, 1, 100, file), 12);
    EXPECT(fgets(buffer, 100, file), 0);
    EXPECT(fgetc(file), EOF);
    EXPECT(freopen("of_stdio.2", "w", file) == file, 1);
    EXPECT(fwrite(text, 2, 3, file), 3);
    EXPECT(fclose(file), 0);
    int fd = open("of_stdio.2", O_RDONLY);
    EXPECT((file = fdopen(fd, "r")) != NULL, 1);
    EXPECT(fread(buffer, 1, 100, file), 6);
    EXPECT(fclose(file), 0);
    EXPECT((file = fmemopen(buffer, 100, "w")) != NULL, 1);
    EXPECT(fputs("no file", file) >= 0, 1);
    EXPECT(fclose(file), 0);
    EXPECT(remove("of_stdio.2"), 0);
    free(line);
}

// What goes from one file to another without passing through the program.
static void copies(void) {
    char text[] = "0123456789";
    int from = open("of_copy", O_RDWR | O_CREAT | O_TRUNC, 0600), to = open("of_copy.2", O_RDWR | O_CREAT | O_TRUNC, 0600), pair[2], other[2];
    off_t at = 0;
    off64_t begin = 4;
    EXPECT(write(from, text, 10), 10);
    errno = 77;
    EXPECT(sendfile(to, -1, NULL, 10), -1);
    EXPECT(errno, EBADF);
    EXPECT(sendfile(to, from, &at, 100), 10);
    EXPECT(copy_file_range(from, &begin, to, NULL, 4, 0), 4);
    EXPECT(pipe(pair) | pipe(other), 0);
    begin = 0;
    EXPECT(splice(from, &begin, pair[1], NULL, 6, 0), 6);
    EXPECT(tee(pair[0], other[1], 5, 0), 5);
    EXPECT(splice(pair[0], NULL, to, NULL, 6, 0), 6);
    EXPECT(lseek(to, 0, SEEK_CUR), 20);
    EXPECT(close(pair[0]) | close(pair[1]) | close(other[0]) | close(other[1]), 0);
    EXPECT(dup2(from, 400) + dup2(from, 401), 801);
#ifdef CLOSE_RANGE_UNSHARE
    EXPECT(close_range(400, 401, 0), 0);
#else
    EXPECT(close(400) | close(401), 0);
#endif
    EXPECT(dup2(to, 400), 400);
    EXPECT(write(400, text, 3), 3);
    EXPECT(close(400) | close(from) | close(to), 0);
    struct stat found;
    EXPECT(lstat("of_copy.2", &found), 0);
    EXPECT(found.st_size, 23);
    DIR *directory = opendir(".");
    EXPECT(directory != NULL && readdir(directory) != NULL, 1);
    EXPECT(closedir(directory), 0);
}

// Waits until an operation has ended, and takes its result.
static ssize_t result(struct aiocb *control) {
    const struct aiocb *list[] = {control};
    while (aio_error(control) == EINPROGRESS)
        aio_suspend(list, 1, NULL);
    return aio_return(control);
}

static void asynchronous(void) {
    char buffer[100], text[] = "0123456789";
    int fd = open("of_aio", O_RDWR | O_CREAT | O_TRUNC, 0600), end = open("of_aio", O_WRONLY);
    struct aiocb first = {.aio_fildes = fd, .aio_buf = text, .aio_nbytes = 10}, second = first;
    EXPECT(aio_write(&first), 0);
    EXPECT(result(&first), 10);
    first.aio_buf = buffer;
    first.aio_offset = 5;
    EXPECT(aio_read(&first), 0);
    EXPECT(result(&first), 5);
    EXPECT(memcmp(buffer, "56789", 5), 0);
    EXPECT(aio_fsync(O_SYNC, &first), 0);
    EXPECT(result(&first), 0);
    // Fails when it is carried out.
    first.aio_fildes = end;
    EXPECT(aio_read(&first), 0);
    EXPECT(result(&first), -1);
    struct aiocb none = {.aio_lio_opcode = LIO_NOP}, *list[] = {&first, &second, NULL, &none};
    first.aio_fildes = fd;
    first.aio_nbytes = 6;
    first.aio_offset = 0;
    first.aio_lio_opcode = LIO_READ;
    second.aio_nbytes = 4;
    second.aio_offset = 10;
    second.aio_lio_opcode = LIO_WRITE;
    EXPECT(lio_listio(LIO_WAIT, list, 4, NULL), 0);
    EXPECT(result(&first), 6);
    EXPECT(result(&second), 4);
    EXPECT(close(fd) | close(end), 0);
}

// A child that has the memory of its parent closes and opens what its own descriptors are.
static void child(void) {
    int fd = open("of_child", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    EXPECT(write(fd, "before", 6), 6);
    pid_t pid = vfork();
    if (pid == 0) {
        close(fd);
        open("/dev/null", O_WRONLY);
        execl("/bin/true", "true", NULL);
        _exit(1);
    }
    int status;
    EXPECT(waitpid(pid, &status, 0), pid);
    EXPECT(status, 0);
    EXPECT(write(fd, "after", 5), 5);
    EXPECT(close(fd), 0);
}

// A slow file: a named pipe, whose other end waits before it writes.
enum { ROUNDS = 5, BYTES = 32768, PIECE = 512 };

static void pass_on(int rank) {
    static char buffer[BYTES];
    int fd = rank == 0 ? open("slow.fifo", O_RDONLY) : -1;
    for (int round = 0; round < ROUNDS; round++) {
        for (long at = 0, size; rank == 0 && at < BYTES; at += size)
            EXPECT((size = read(fd, buffer + at, PIECE)) > 0, 1);
        MPI_Bcast(buffer, BYTES, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    if (rank == 0)
        EXPECT(close(fd), 0);
}

static void feed(long ms) {
    static char buffer[BYTES];
    int fd = open("slow.fifo", O_WRONLY);
    for (int round = 0; round < ROUNDS; round++) {
        nanosleep(&(struct timespec){0, ms * 1000000}, NULL);
        write(fd, buffer, BYTES);
    }
    _exit(0);
}

int main(int argc, char **argv) {
    long ms = argc == 3 ? atol(argv[2]) : 0;
    const char *first = getenv("OMPI_COMM_WORLD_RANK") ? getenv("OMPI_COMM_WORLD_RANK") : getenv("PMI_RANK");
    if (ms && atoi(first) == 0 && fork() == 0)
        feed(ms);
    int before = open("before", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    MPI_Init(&argc, &argv);
    int rank;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (ms) {
        pass_on(rank);
    } else if (rank == 0) {
        descriptors();
        streams();
        copies();
        asynchronous();
        child();
        // Opened unseen.
        EXPECT(write(before, "seen", 4), 4);
        EXPECT(close(before), 0);
        puts("to the end");
    }
    MPI_Finalize();
    printf("rank %d: %d failures\n", rank, failures);
    return failures != 0;
}
