/** Writes a plan as JSON (`schema.ts`). */
import type { ArgSpec } from '../backends/module.ts'
import { targetOf } from '../backends/targets/index.ts'
import type { Param } from '../ir/coordinates/stage1.ts'
import { visitedAxes } from '../ir/coordinates/stage1-tree.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { runtimeLists, storedKernel } from './binding-codecs.ts'
import { expr } from './expressions.ts'
import type { DeviceArray, LaunchPlan, LaunchStep } from './launch-plan.ts'
import { planFields } from './plan-codec.ts'
import {
  type Expression,
  type Plan,
  type PlanArgument,
  type PlanBinding,
  type PlanBuffer,
  type PlanLaunch,
  type PlanSize,
  type RuntimeFormat,
  SCHEMA,
} from './schema.ts'
import { sha256 } from './sha256.ts'

const data = (e: Expr): Expression => expr.write(e) as Expression

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
export function writePlan(plan: LaunchPlan): Plan {
  const { kernel, needs, checks, facts, lostWrites, precision } = plan
  const bufferOf = (b: DeviceArray): PlanBuffer => ({
    name: b.name,
    dtype: b.dtype,
    role: b.role,
    length: data(b.shape[0]!),
    storage: plan.words.includes(b.dtype) ? 'word' : 'native',
  })
  const written: Plan = {
    schema: SCHEMA,
    kernel: plan.name,
    schedule: plan.schedule,
    index: plan.index,
    device: plan.device,
    target: targetOf({ kind: plan.device }),
    needs,
    sizes: plan.params.flatMap((p) => (p.kind === 'size' ? [sizeOf(p, plan)] : [])),
    scalars: plan.params.flatMap(({ name, kind, dtype }) => (kind === 'scalar' ? [{ name, dtype }] : [])),
    buffers: plan.buffers.map(bufferOf),
    ...(plan.arenas.length > 0 && {
      packed: plan.arenas.flatMap((a) =>
        a.members.map((m) => ({
          ...bufferOf(m.buffer),
          in: a.buffer.name,
          base: m.base,
          at: data(m.offset),
        })),
      ),
    }),
    // The codec omits fields for the compiler, such as source locations.
    modules: plan.texts.map((t) => ({ ...t, sha256: sha256(t.text) })),
    steps: plan.steps.map((s) => (s.kind === 'clear' ? { clear: s.buffer } : launchOf(s, plan))),
    checks,
    ...(facts && facts.length > 0 && { facts }),
    ...(lostWrites && { lostWrites }),
    ...(precision !== undefined && { precision }),
    ...(plan.runtimeLists && {
      runtimeFormats: plan.runtimeLists.map((l) => runtimeLists.write(l) as RuntimeFormat),
    }),
    binding: storedKernel.write({ ...kernel, visited: visitedAxes(kernel) }) as PlanBinding,
  }
  return planFields.write(written) as Plan
}

function sizeOf({ name, measured }: Param, { kernel, arenas }: LaunchPlan): PlanSize {
  if (arenas.some((a) => a.members.some((m) => m.base === name))) return { name, from: 'packed' }
  if (!kernel.params.some((p) => p.name === name)) return { name, from: 'counted' }
  return { name, from: measured ? 'measured' : 'caller' }
}

function launchOf({ name, grid, entry, reads, writes }: LaunchStep, { texts }: LaunchPlan): PlanLaunch {
  const [x, y, z] = grid
  return {
    launch: name,
    module: texts.findIndex((t) => t.entries.includes(entry)),
    grid: [data(x), data(y), data(z)],
    block: entry.block,
    ...(entry.sharedBytes > 0 && { shared: entry.sharedBytes }),
    ...(entry.cluster && { cluster: entry.cluster }),
    ...(entry.waits && { waits: true }),
    ...(entry.place !== undefined && { place: entry.place }),
    args: entry.args.map(argumentOf),
    reads: [...reads],
    writes: [...writes],
  }
}

function argumentOf(a: ArgSpec): PlanArgument {
  if (a.kind === 'buffer') return { buffer: a.name, dtype: a.dtype, access: a.access }
  if (a.kind === 'scalar') return { scalar: a.name, dtype: a.dtype }
  const { rows, columns, box, swizzle } = a.matrix
  return {
    matrix: a.name,
    of: a.buffer,
    dtype: a.dtype,
    rows: data(rows),
    columns: data(columns),
    box,
    swizzle,
  }
}
