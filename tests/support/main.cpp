// The start of every test program: doctest's, except that a filter that matches no test is a
// failure, as is a name that CMake would cut in two. CTest starts each test by such a filter.
#define DOCTEST_CONFIG_IMPLEMENT
#include <cstdio>
#include <cstring>

#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/processor/processor.hpp"

namespace {

unsigned g_matched = 0;
bool g_bad_name = false;

struct CountMatches : doctest::IReporter {
  explicit CountMatches(const doctest::ContextOptions& /*options*/) {}
  void report_query(const doctest::QueryData& query) override {
    g_matched = 1;
    for (unsigned i = 0; i < query.num_data; ++i) {
      if (std::strchr(query.data[i]->m_name, ';') == nullptr) continue;
      std::fprintf(stderr, "a test's name must not hold ';': %s\n", query.data[i]->m_name);
      g_bad_name = true;
    }
  }
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& stats) override {
    g_matched = stats.numTestCasesPassingFilters;
  }
  void test_case_start(const doctest::TestCaseData& /*test*/) override {}
  void test_case_reenter(const doctest::TestCaseData& /*test*/) override {}
  void test_case_end(const doctest::CurrentTestCaseStats& /*stats*/) override {}
  void test_case_exception(const doctest::TestCaseException& /*exception*/) override {}
  void subcase_start(const doctest::SubcaseSignature& /*subcase*/) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData& /*data*/) override {}
  void log_message(const doctest::MessageData& /*data*/) override {}
  void test_case_skipped(const doctest::TestCaseData& /*test*/) override {}
};

DOCTEST_REGISTER_LISTENER("count_matches", 1, CountMatches);

}  // namespace

int main(int argc, char** argv) {
  // As the tools: MASQUE_CPU=avx2 and so on. A set that this processor lacks skips the tests.
  try {
    masque::limit_instruction_set_by_environment();
  } catch (const masque::UsageError& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 77;
  }
  doctest::Context context(argc, argv);
  const int result = context.run();
  if (result != 0 || g_bad_name) return 1;
  if (g_matched == 0 && !context.shouldExit()) {
    std::fprintf(stderr, "no test case matches\n");
    return 1;
  }
  return 0;
}
