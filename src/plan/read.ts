/** Reads a plan from JSON, and checks that a device can run it. */
import { failAs } from '../ast/diagnostics/diagnostic.ts'
import type { ArgSpec } from '../backends/module.ts'
import type { ModuleText } from '../backends/targets/index.ts'
import type { Param } from '../ir/coordinates/stage1.ts'
import type { Expr } from '../ir/expressions/expr.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import type { Clear } from '../ir/statements/loops.ts'
import type { Dtype } from '../ir/values/dtype.ts'
import type { Device } from '../runtime/device.ts'
import { isWord } from '../runtime/webgpu/widened-elements.ts'
import { readKernel } from './binding-codecs.ts'
import { malformed, objectAt } from './codec.ts'
import { expr } from './expressions.ts'
import type { DeviceArray, LaunchPlan, LaunchStep } from './launch-plan.ts'
import { planFields } from './plan-codec.ts'
import {
  type Expression,
  type Plan,
  type PlanArgument,
  type PlanBuffer,
  type PlanLaunch,
  SCHEMA,
} from './schema.ts'
import { sha256 } from './sha256.ts'

/** Throws SptError `plan/version` for a later version of the schema, and `plan/malformed` for another file. */
export function checkSchema(json: unknown): void {
  const { schema } = objectAt(json, '')
  const [name, version] = SCHEMA.split('/') as [string, string]
  const [, given] = typeof schema === 'string' && schema.startsWith(`${name}/`) ? schema.split('/') : []
  if (given === undefined || !/^\d+$/.test(given)) malformed('schema', schema, SCHEMA)
  if (Number(given) <= Number(version)) return
  failAs('plan/version', {
    message: `the plan has schema ${name}/${given}, and this version of sparsetile reads ${SCHEMA}`,
    expected: SCHEMA,
    hint: 'update sparsetile, or write the plan again with this version',
  })
}

/**
 * Returns the plan that `writePlan` wrote. Throws SptError `plan/version`, `plan/malformed` with the path of the field, `plan/hash` if
 * the text of a module was changed.
 */
export function readPlan(json: unknown): LaunchPlan {
  checkSchema(json)
  const plan = planFields.read(json, '')
  const kernel = readKernel(plan)
  const references = new References(plan)
  for (const [k, m] of plan.modules.entries())
    if (sha256(m.text) !== m.sha256)
      failAs('plan/hash', {
        message: `the text of module ${m.name} (modules[${k}]) does not have the SHA-256 hash of the plan`,
        expected: `the hash ${m.sha256}`,
        hint: 'write the plan again: spt emit --target plan',
      })
  const steps = plan.steps.map((s, k): Clear | LaunchStep => {
    const path = `steps[${k}]`
    return 'clear' in s
      ? { kind: 'clear', buffer: references.buffer(s.clear, `${path}.clear`) }
      : stepOf(s, references, path)
  })
  const packed = plan.packed ?? []
  const arrays = [...plan.buffers, ...packed]
  return {
    name: plan.kernel,
    schedule: plan.schedule,
    device: plan.device,
    index: plan.index,
    needs: plan.needs,
    kernel,
    params: [
      ...plan.sizes.map(
        (s): Param => ({
          name: s.name,
          kind: 'size',
          dtype: 'i32',
          ...(s.from !== 'caller' && { measured: true }),
        }),
      ),
      ...plan.scalars.map((s): Param => ({ ...s, kind: 'scalar' })),
    ],
    buffers: plan.buffers.map((b, k) => arrayOf(b, references, `buffers[${k}]`)),
    arenas: [...new Set(packed.map((p) => p.in))].map((arena) => ({
      buffer: arrayOf(plan.buffers[references.indexOf(arena, 'packed')]!, references, 'packed'),
      members: packed.flatMap((p, k) =>
        p.in === arena
          ? [
              {
                buffer: arrayOf(p, references, `packed[${k}]`),
                base: p.base,
                offset: references.expr(p.at, `packed[${k}].at`),
              },
            ]
          : [],
      ),
    })),
    words: [...new Set(arrays.flatMap((b): Dtype[] => (b.storage === 'word' ? [b.dtype] : [])))],
    texts: plan.modules.map(
      ({ sha256: _, ...m }, k): ModuleText => ({
        ...m,
        target: plan.target,
        entries: steps.flatMap((s, n) => (s.kind === 'launch' && moduleOf(plan, n) === k ? [s.entry] : [])),
      }),
    ),
    steps,
    checks: plan.checks,
    facts: plan.facts,
    lostWrites: plan.lostWrites,
    runtimeLists: kernel.runtimeLists,
    precision: plan.precision,
  }
}

const moduleOf = ({ steps }: Plan, step: number): number | undefined => {
  const s = steps[step]!
  return 'launch' in s ? s.module : undefined
}

/** The names that expressions and steps of a plan may mention. */
class References {
  readonly #plan: Plan
  readonly #sizes: ReadonlySet<string>

  constructor(plan: Plan) {
    this.#plan = plan
    this.#sizes = new Set([...plan.sizes, ...plan.scalars].map((s) => s.name))
  }

  indexOf(name: string, path: string): number {
    const k = this.#plan.buffers.findIndex((b) => b.name === name)
    return k < 0
      ? malformed(path, name, `a buffer of the plan: ${this.#plan.buffers.map((b) => b.name).join(', ')}`)
      : k
  }

  buffer(name: string, path: string): string {
    this.indexOf(name, path)
    return name
  }

  scalar(name: string, path: string): string {
    if (!this.#sizes.has(name))
      malformed(path, name, `a size or scalar of the plan: ${[...this.#sizes].join(', ')}`)
    return name
  }

  module(index: number, path: string): void {
    const { length } = this.#plan.modules
    if (index >= length) malformed(path, index, `the index of one of ${length} modules`)
  }

  expr(e: Expression, path: string): Expr {
    const read = expr.read(e, path)
    for (const name of freeVars(read)) this.scalar(name, path)
    return read
  }
}

const arrayOf = (b: PlanBuffer, references: References, path: string): DeviceArray => ({
  name: b.name,
  dtype: b.dtype,
  role: b.role,
  shape: [references.expr(b.length, `${path}.length`)],
})

function stepOf(s: PlanLaunch, references: References, path: string): LaunchStep {
  references.module(s.module, `${path}.module`)
  const [x, y, z] = s.grid.map((e, k) => references.expr(e, `${path}.grid[${k}]`)) as [Expr, Expr, Expr]
  const named = (names: readonly string[], field: string): ReadonlySet<string> =>
    new Set(names.map((b, k) => references.buffer(b, `${path}.${field}[${k}]`)))
  return {
    kind: 'launch',
    name: s.launch,
    grid: [x, y, z],
    entry: {
      name: s.launch,
      args: s.args.map((a, k) => argumentOf(a, references, `${path}.args[${k}]`)),
      block: s.block,
      sharedBytes: s.shared ?? 0,
      ...(s.cluster && { cluster: s.cluster }),
      ...(s.waits && { waits: true }),
      ...(s.place !== undefined && { place: s.place }),
    },
    reads: named(s.reads, 'reads'),
    writes: named(s.writes, 'writes'),
  }
}

function argumentOf(a: PlanArgument, references: References, path: string): ArgSpec {
  const { dtype } = a
  if ('buffer' in a)
    return { kind: 'buffer', name: references.buffer(a.buffer, `${path}.buffer`), dtype, access: a.access }
  if ('scalar' in a) return { kind: 'scalar', name: references.scalar(a.scalar, `${path}.scalar`), dtype }
  const rows = references.expr(a.rows, `${path}.rows`)
  const columns = references.expr(a.columns, `${path}.columns`)
  const matrix = { rows, columns, box: a.box, swizzle: a.swizzle }
  return { kind: 'matrix', name: a.matrix, buffer: references.buffer(a.of, `${path}.of`), dtype, matrix }
}

/**
 * Throws SptError `plan/other-device`, `plan/missing-feature` or `plan/limit` unless the device can run the texts of a plan, which was
 * perhaps compiled for another device of the same kind.
 */
export function checkDevice({ name, device: kind, needs, buffers, words }: LaunchPlan, device: Device): void {
  const hint = `compile the kernel for ${device.name}`
  if (kind !== device.kind)
    failAs('plan/other-device', {
      message: `the plan of ${name} is for ${kind}, and ${device.name} is a ${device.kind} device`,
      expected: `a ${kind} device`,
      hint,
    })
  const missing = needs.features.find((f) => !device.features.has(f))
  if (missing !== undefined)
    failAs('plan/missing-feature', {
      message: `the plan of ${name} needs ${missing}, which ${device.name} does not have`,
      expected: `a device with ${missing}`,
      hint,
    })
  const other = buffers.find((b) => words.includes(b.dtype) !== isWord(device, b.dtype))
  if (other)
    failAs('plan/other-device', {
      message: `the plan of ${name} stores ${other.dtype} elements (${other.name}) ${words.includes(other.dtype) ? 'in words of 32 bits' : 'unwidened'}, and ${device.name} does not`,
      expected: 'a device with the same element storage',
      hint,
    })
  const { limits } = device
  const exceeded = (
    [
      ['buffers in a launch', needs.buffersPerLaunch, limits.maxBuffersPerLaunch],
      ['threads in a block', needs.threadsPerBlock, limits.maxThreadsPerBlock],
      ...needs.block.map((n, k) => [`threads in ${'xyz'[k]}`, n, limits.maxBlockDim[k]!] as const),
      ['bytes of shared memory in a block', needs.sharedBytes, limits.maxSharedBytes],
      ['neighbouring threads that exchange registers', needs.lanes ?? 1, limits.lanes ?? 1],
    ] as const
  ).find(([, needed, limit]) => needed > limit)
  if (exceeded)
    failAs('plan/limit', {
      message: `the plan of ${name} needs ${exceeded[1]} ${exceeded[0]}; ${device.name} allows ${exceeded[2]}`,
      expected: `at most ${exceeded[2]}`,
      hint,
    })
}
