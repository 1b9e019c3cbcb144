// A report of made-up figures, for tests.
#pragma once

#include "plots/report/report.h"

namespace pfeife {

/// Two cases of three plans each; in the second, one plan does not fit and one does not exist.
ReportInput example_report();

}  // namespace pfeife
