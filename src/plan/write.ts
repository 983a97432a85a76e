/** Writes a plan as JSON (`schema.ts`). */
import { visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import { runtimeLists, storedKernel } from './binding-codecs.ts'
import type { LaunchPlan } from './launch-plan.ts'
import { planFields } from './plan-codec.ts'
import { type Plan, type PlanBinding, type RuntimeFormat, SCHEMA } from './schema.ts'
import { sha256 } from './sha256.ts'

/** Columns of a line of printed JSON. */
const WIDTH = 120

/** Prints JSON with short values on one line each. */
export function printPlan(value: unknown, indent = ''): string {
  const line = JSON.stringify(value)
  if (line.length + indent.length <= WIDTH || typeof value !== 'object' || value === null) return line
  const inner = `${indent} `
  const items = Array.isArray(value)
    ? value.map((x) => printPlan(x, inner))
    : Object.entries(value).flatMap(([k, x]) =>
        x === undefined ? [] : [`${JSON.stringify(k)}: ${printPlan(x, inner)}`],
      )
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${items.map((x) => inner + x).join(',\n')}\n${indent}${close}`
}

/** Returns the plan as plain JSON data, without source locations. */
export function writePlan({
  binding,
  texts,
  packed,
  runtimeLists: lists,
  facts,
  precision,
  ...plan
}: LaunchPlan): Plan {
  const written: Plan = {
    schema: SCHEMA,
    ...plan,
    // The codec omits fields for the compiler, such as source locations.
    modules: texts.map((t) => ({ ...t, sha256: sha256(t.text) })),
    ...(packed.length > 0 && { packed }),
    ...(facts && facts.length > 0 && { facts }),
    ...(precision !== undefined && { precision }),
    ...(lists && { runtimeFormats: lists.map((l) => runtimeLists.write(l) as RuntimeFormat) }),
    binding: storedKernel.write({ ...binding, visited: visitedAxes(binding) }) as PlanBinding,
  }
  return planFields.write(written) as Plan
}
