/** Reads a plan from JSON, and checks that a device can run it. */
import { failAs } from '../ast/diagnostics/diagnostic.ts'
import type { ArgSpec, Entry } from '../backends/module.ts'
import type { ModuleText } from '../backends/targets/index.ts'
import { freeVars } from '../ir/expressions/expr-tree.ts'
import type { Device } from '../runtime/device.ts'
import { isWord } from '../runtime/webgpu/widened-elements.ts'
import { readKernel } from './binding-codecs.ts'
import { checkDepth, malformed, objectAt, within } from './codec.ts'
import { expr } from './expressions.ts'
import type { LaunchPlan } from './launch-plan.ts'
import { planFields } from './plan-codec.ts'
import { type Expression, type Plan, type PlanArgument, type PlanLaunch, SCHEMA } from './schema.ts'
import { sha256 } from './sha256.ts'

/** Throws SptError `plan/version` for a later version of the schema, and `plan/malformed` for another file. */
export function checkSchema(json: unknown, at = ''): void {
  checkDepth(json, at)
  const { schema } = objectAt(json, at)
  const [name, version] = SCHEMA.split('/') as [string, string]
  const [, given] = typeof schema === 'string' && schema.startsWith(`${name}/`) ? schema.split('/') : []
  if (given === undefined || !/^\d+$/.test(given)) malformed(within(at, 'schema'), schema, SCHEMA)
  if (Number(given) <= Number(version)) return
  failAs('plan/version', {
    message: `the plan has schema ${name}/${given}, and this version of sparsetile reads ${SCHEMA}`,
    expected: SCHEMA,
    hint: 'update sparsetile, or write the plan again with this version',
  })
}

/**
 * Returns the plan that `writePlan` wrote. Throws SptError `plan/version`, `plan/malformed` with the path of the field, `plan/hash` if
 * the text of a module was changed. `at`: path of the plan in a family.
 */
export function readPlan(json: unknown, at = ''): LaunchPlan {
  checkSchema(json, at)
  const {
    schema: _,
    modules,
    binding: __,
    runtimeFormats: ___,
    packed = [],
    ...plan
  } = planFields.read(json, at)
  const { target, steps } = plan
  const binding = readKernel(json as Plan, at)
  checkNames({ ...plan, packed }, modules.length, at)
  for (const [k, m] of modules.entries())
    if (sha256(m.text) !== m.sha256)
      failAs('plan/hash', {
        message: `the text of module ${m.name} (${within(at, `modules[${k}]`)}) does not have the SHA-256 hash of the plan`,
        expected: `the hash ${m.sha256}`,
        hint: 'write the plan again: spt emit --target plan',
      })
  const texts = modules.map(({ sha256: _, ...m }, k): ModuleText => {
    const launches = steps.filter((s) => 'launch' in s)
    return { ...m, target, entries: launches.filter((s) => s.module === k).map(entryOf) }
  })
  return { ...plan, packed, binding, texts, runtimeLists: binding.runtimeLists }
}

/** Checks that expressions and steps mention sizes, scalars, buffers and modules of the plan. Throws SptError `plan/malformed`. */
function checkNames(
  { sizes, scalars, buffers, packed, steps, rounds = [] }: Names,
  modules: number,
  at: string,
): void {
  const known = [...new Set([...sizes, ...scalars].map((s) => s.name))]
  const names = buffers.map((b) => b.name)
  const buffer = (name: string, path: string): void => {
    if (!names.includes(name)) malformed(path, name, `a buffer of the plan: ${names.join(', ')}`)
  }
  const scalar = (name: string, path: string): void => {
    if (!known.includes(name)) malformed(path, name, `a size or scalar of the plan: ${known.join(', ')}`)
  }
  const value = (e: Expression, path: string): void => {
    for (const name of freeVars(expr.read(e, path))) scalar(name, path)
  }
  const each = <T>(list: readonly T[], path: string, check: (item: T, path: string) => void): void => {
    for (const [k, x] of list.entries()) check(x, `${path}[${k}]`)
  }
  each(buffers, within(at, 'buffers'), (b, path) => value(b.length, `${path}.length`))
  each(packed, within(at, 'packed'), (p, path) => {
    buffer(p.in, `${path}.in`)
    value(p.length, `${path}.length`)
    value(p.at, `${path}.at`)
  })
  each(steps, within(at, 'steps'), (s, path) => {
    if ('clear' in s) return buffer(s.clear, `${path}.clear`)
    if (s.module >= modules) malformed(`${path}.module`, s.module, `the index of one of ${modules} modules`)
    each(s.grid, `${path}.grid`, value)
    each(s.args, `${path}.args`, (a, own) => {
      if ('scalar' in a) scalar(a.scalar, `${own}.scalar`)
      else if ('buffer' in a) buffer(a.buffer, `${own}.buffer`)
      else {
        buffer(a.of, `${own}.of`)
        value(a.rows, `${own}.rows`)
        value(a.columns, `${own}.columns`)
      }
    })
    each(s.reads, `${path}.reads`, buffer)
    each(s.writes, `${path}.writes`, buffer)
  })
  let end = 0
  each(rounds, within(at, 'rounds'), (r, path) => {
    if (r.from < end) malformed(`${path}.from`, r.from, `the index of a step from ${end} on`)
    if (r.to < r.from || r.to > steps.length)
      malformed(`${path}.to`, r.to, `an index from ${r.from} to ${steps.length}`)
    if (r.count !== undefined) value(r.count, `${path}.count`)
    else if (r.while === undefined) malformed(path, r, 'rounds with `count` or `while`')
    if (r.while !== undefined) buffer(r.while, `${path}.while`)
    end = r.to
  })
}

type Names = Pick<LaunchPlan, 'sizes' | 'scalars' | 'buffers' | 'packed' | 'steps' | 'rounds'>

const entryOf = ({ launch, args, block, shared = 0, cluster, waits, place }: PlanLaunch): Entry => ({
  name: launch,
  args: args.map(argumentOf),
  block,
  sharedBytes: shared,
  ...(cluster && { cluster }),
  ...(waits && { waits: true }),
  ...(place !== undefined && { place }),
})

function argumentOf(a: PlanArgument): ArgSpec {
  const { dtype } = a
  if ('buffer' in a) return { kind: 'buffer', name: a.buffer, dtype, access: a.access }
  if ('scalar' in a) return { kind: 'scalar', name: a.scalar, dtype }
  const { rows, columns, box, swizzle } = a
  const matrix = { rows: expr.read(rows, ''), columns: expr.read(columns, ''), box, swizzle }
  return { kind: 'matrix', name: a.matrix, buffer: a.of, dtype, matrix }
}

/**
 * Throws SptError `plan/other-device`, `plan/missing-feature` or `plan/limit` unless the device can run the texts of a plan, which was
 * perhaps compiled for another device of the same kind.
 */
export function checkDevice(
  { kernel: name, device: kind, needs, buffers }: LaunchPlan,
  device: Device,
): void {
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
  const other = buffers.find((b) => (b.storage === 'word') !== isWord(device, b.dtype))
  if (other)
    failAs('plan/other-device', {
      message: `the plan of ${name} stores ${other.dtype} elements (${other.name}) ${other.storage === 'word' ? 'in words of 32 bits' : 'unwidened'}, and ${device.name} does not`,
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
