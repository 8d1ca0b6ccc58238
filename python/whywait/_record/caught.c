/* A function of a library that is inside of a program: calls of FUNCTION go to the recorder of whywait if it is loaded, and
   otherwise on to REAL, the name under which the library has it for tools. Compiled once for each function. */

#define _GNU_SOURCE
#include <dlfcn.h>

#define TEXT_OF(name) #name
#define TEXT(name) TEXT_OF(name)
#define PLACE "whywait_place_" TEXT(FUNCTION)

extern void REAL(void);

/* Where calls go. */
static void (*place)(void) __asm__(PLACE) __attribute__((used)) = REAL;

__attribute__((constructor)) static void ask(void)
{
    void (*(*catch)(const char *, void (*)(void)))(void);
    void (*caught)(void);

    *(void **)&catch = dlsym(RTLD_DEFAULT, "whywait_catch");
    caught = catch ? catch(TEXT(FUNCTION), REAL) : 0;
    if (caught)
        place = caught;
}

/* It knows nothing of its arguments, which stay where they are. */
__asm__(".text\n"
        ".globl " TEXT(FUNCTION) "\n"
        ".type " TEXT(FUNCTION) ", @function\n"
        TEXT(FUNCTION) ":\n"
#if defined(__x86_64__)
        "endbr64\n"
        "jmp *" PLACE "(%rip)\n"
#elif defined(__aarch64__)
        "hint #34\n"
        "adrp x16, " PLACE "\n"
        "ldr x16, [x16, :lo12:" PLACE "]\n"
        "br x16\n"
#else
#error "whywait records programs on x86-64 and aarch64"
#endif
        ".size " TEXT(FUNCTION) ", . - " TEXT(FUNCTION) "\n");
