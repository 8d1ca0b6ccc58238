// Makes a program without MPI one that can be recorded: compile it with -Dmain=program.
#include <mpi.h>

int program(int argc, char **argv);

#undef main
int main(int argc, char **argv) {
    int provided;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
    int code = program(argc, argv);
    MPI_Finalize();
    return code;
}
