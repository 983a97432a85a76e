/** Coordinate remapping at once. */
import { runSync } from '../../src/ast/work.ts'
import { provedOf } from '../../src/formats/proof/prove.ts'
import type { Instance } from '../../src/ir/formats/format.ts'
import { remapping } from '../../src/run/bind/sources/remap-entries.ts'

type Rest = Parameters<typeof remapping> extends [unknown, ...infer R] ? R : never

export const remapParts = (instance: Instance, ...rest: Rest) =>
  runSync(
    remapping({ instance, proved: instance.parts.map((p) => provedOf(p.instance, instance.over)) }, ...rest),
  )
