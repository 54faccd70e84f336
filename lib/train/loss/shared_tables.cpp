#include "train/loss/shared_tables.hpp"

#include "model/role.hpp"

namespace masque::train {

bool shares_table(model::Role role, const model::Design& own, const model::Design& other) {
  const model::RoleShape a = model::role_shape(own, role, 0);
  const model::RoleShape b = model::role_shape(other, role, 0);
  return a.rows == b.rows && a.columns == b.columns &&
         (role != model::Role::kPositionTable || own.position_offset == other.position_offset);
}

ParameterMap shared_tables(const model::Design& own, const ParameterMap& map,
                           const model::Design& other) {
  ParameterMap tables;
  for (const model::Role role : kSharedTables) {
    const Index table = map.weight(role);
    if (table != ParameterMap::kNone && shares_table(role, own, other))
      tables.set(role, false, 0, 0, table);
  }
  return tables;
}

}  // namespace masque::train
