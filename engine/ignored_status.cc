// Must not compile with warnings as errors: a status is not to be ignored.
#include "regard/status.h"

regard::Status Call();

#ifdef REGARD_IGNORE
void Use() { Call(); }
#else
bool Use() { return Call().ok(); }
#endif
