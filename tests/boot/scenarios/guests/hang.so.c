/* Loaded before ibprov: its child that asks PFs hangs, as in a driver that never
 * answers. */
#include <string.h>
#include <unistd.h>

__attribute__((constructor)) static void hang(int argc, char **argv)
{
	while (argc > 1 && strcmp(argv[1], "hand") == 0)
		pause();
}
