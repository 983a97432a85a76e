/** One program, one schedule, one set of data: every stage and device against the reference. */
import { expect } from 'vitest'
import { type Memory, outputIn, runLaunches, runLoops } from '../../src/api/stages/stage-check.ts'
import { verifyPass, verifyStage } from '../../src/api/stages/stage-verifier.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { TARGETS as LANGUAGES } from '../../src/backends/targets/index.ts'
import { print3 } from '../../src/ir/print/print-stage2.ts'
import { loopsOf } from '../../src/ir/statements/definitions.ts'
import type { Kernel3, Stmt } from '../../src/ir/statements/loops.ts'
import { walkStmts } from '../../src/ir/statements/tree.ts'
import type { LowerOptions } from '../../src/lower/passes.ts'
import { type RefResult, reference } from '../../src/reference/index.ts'
import { type Bound, bindInputs, type Inputs } from '../../src/run/bind/index.ts'
import { referenceInputs } from '../../src/run/bind/results/reference-inputs.ts'
import type { Compilation } from '../../src/run/compile/compile.ts'
import { compileOn } from '../../src/run/compile/compiled-program.ts'
import { Executable } from '../../src/run/execution/execute.ts'
import { verify } from '../../src/run/verify/verify.ts'
import { createCpuDevice } from '../../src/runtime/cpu/device.ts'
import type { Device } from '../../src/runtime/device.ts'
import { decoder, type Tensor } from '../../src/storage/tensor.ts'
import { Skipped } from '../support/compared.ts'
import type { Sample } from '../support/program-gen.ts'

export type Expected = Readonly<Record<string, RefResult>>

/** What the kernel as written computes, from the raw coordinates: nothing is shared with binding. */
export const expectedOf = (sample: Sample, c: Compilation): Expected =>
  reference(c.source, sample.reference).buffers

export const bind = (sample: Sample, c: Compilation): Bound =>
  bindInputs(c.kernel, { tensors: sample.tensors, params: sample.params })

/** The interpreter of Stage II alone: also where instructions are used that only devices know. */
export function agreeOnLoops(c: Compilation, bound: Bound, expected: Expected): void {
  for (const order of ['forward', 'backward'] as const)
    compare(`stage 2 ${order}`, bound, runLoops(c.loops, bound, order), expected)
}

/** Verifiers after every pass; the interpreters of Stages II and III. */
export function agreeOnStages(c: Compilation, bound: Bound, expected: Expected): void {
  const plans = plansOf(c)
  agreeOnLoops(c, bound, expected)
  for (const { what, plan } of plans) compare(`stage 3, ${what}`, bound, runLaunches(plan, bound), expected)
}

interface Verified {
  /** How it was lowered. */
  readonly what: string
  readonly plan: Kernel3
}
const verified = new WeakMap<Compilation, readonly Verified[]>()

/** Verifies every stage after every pass, once a compilation; the plans that differ between targets. */
function plansOf(c: Compilation): readonly Verified[] {
  const known = verified.get(c)
  if (known) return known
  verifyStage(c.kernel)
  verifyStage(c.loops)
  const plans: Verified[] = []
  for (const options of bindsThreads(c.loops.body) ? TARGETS : TARGETS.slice(0, 2)) {
    const plan = c.observe(verifyPass, options)
    // What devices run is what was verified, lowered once.
    c.adopt(plan, options)
    if (options.lanes && !meetsInRows(plan)) continue
    if (options.promote && print3(plan) === print3(c.plan)) continue
    plans.push({ what: `${options.lanes ?? 1} lanes${options.promote ? ', promoted' : ''}`, plan })
  }
  verified.set(c, plans)
  return plans
}

/** No lanes, sums in registers, as few lanes as devices have, and a warp. */
const TARGETS: readonly LowerOptions[] = [
  {},
  LANGUAGES.js.lowering,
  { lanes: 4, together: true },
  { lanes: 32 },
]

/** Lanes make a difference to nothing else. */
const bindsThreads = (body: readonly Stmt[]): boolean =>
  loopsOf(body).some((l) => l.mode.kind === 'bind' && l.mode.to.startsWith('thread'))

/** Whether any lanes exchange registers or meet without their block. */
function meetsInRows(plan: Kernel3): boolean {
  let found = false
  for (const step of plan.steps)
    if (step.kind === 'launch')
      walkStmts(step.body, (s) => {
        if ((s.kind === 'let' && s.lane) || (s.kind === 'barrier' && s.lanes)) found = true
      })
  return found
}

type OnDevice = Awaited<ReturnType<typeof compileOn>>
const latest = new WeakMap<Device, { readonly c: Compilation; readonly program: OnDevice }>()

/** The program on a device, compiled once for all the data that it runs on one after the other. */
async function compiled(device: Device, c: Compilation): Promise<OnDevice> {
  const before = latest.get(device)
  if (before?.c === c) return before.program
  latest.delete(device)
  before?.program.release()
  const program = await compileOn(device, c)
  latest.set(device, { c, program })
  return program
}

/** Every stage and the cpu compute what the reference does. */
export async function agreeOnAll(c: Compilation, inputs: Inputs): Promise<void> {
  const bound = bindInputs(c.kernel, inputs)
  const expected = reference(c.source, referenceInputs(c.source, bound)).buffers
  agreeOnStages(c, bound, expected)
  await agreeOnDevice(createCpuDevice(), c, bound, expected)
}

/** Runs on a device, on poisoned memory, and is verified as users verify: within the rounding that statements may have. */
export async function verifiedOn(device: Device, c: Compilation, bound: Bound): Promise<void> {
  const executable = await Executable.create(await compileOn(device, c), bound)
  try {
    await executable.poison()
    await executable.run()
    expect((await verify(c.source, executable)).problems).toEqual([])
  } finally {
    executable.free()
  }
}

/**
 * Runs on a device, on poisoned memory. Throws `Skipped` where the schedule exceeds limits of the device. `lost`: whether
 * the run has to say that a write found no element.
 */
export async function agreeOnDevice(
  device: Device,
  c: Compilation,
  bound: Bound,
  expected: Expected,
  lost = false,
): Promise<void> {
  const program = await compiled(device, c).catch(skipBeyondLimits)
  try {
    const executable = await Executable.create(program, bound).catch(skipBeyondLimits)
    try {
      await executable.poison()
      const ends = await executable.run().then(() => undefined, codeOf)
      if (ends !== (lost ? 'run/lost-writes' : undefined)) throw new Error(`the run ends with ${ends}`)
      for (const [name, want] of Object.entries(expected))
        same(`${device.kind} ${name}`, await executable.read(name), want)
    } finally {
      executable.free()
    }
  } catch (e) {
    if (e instanceof Skipped) throw e
    const texts = program.plan.texts.map((t) => t.text).join('\n')
    throw new Error(`${e instanceof Error ? e.message : e}\n${texts}`)
  }
}

function skipBeyondLimits(e: unknown): never {
  const code = e instanceof SptError ? e.diagnostics[0]!.code : ''
  throw LIMITS.has(code) ? new Skipped(code) : e
}

/** The code of a diagnostic; anything else is thrown on. */
function codeOf(e: unknown): string {
  if (e instanceof SptError) return e.diagnostics[0]!.code
  throw e
}

const LIMITS = new Set([
  'plan/block-too-large',
  'plan/too-many-buffers',
  'plan/grid-too-large',
  'emit/no-f64',
])

/** Every output in memory. */
export function compare(what: string, bound: Bound, memory: Memory, expected: Expected, check = same): void {
  for (const [name, want] of Object.entries(expected))
    check(`${what} ${name}`, outputIn(memory, bound, name), want)
}

/** Equal to the last bit; both zeros are equal, and what a rounded condition leaves undecided may be anything. */
function same(what: string, got: Tensor, want: RefResult): void {
  const read = decoder(got.dtype)
  const values = Array.from(got.values!, (x) => (read ? read(x) : x) + 0)
  const wanted = Array.from(want.values, (x) => x + 0)
  const coords = got.kind === 'coords' ? got.coords.map((x) => [...x].join(' ')).join('; ') : ''
  const wantedCoords = want.kind === 'sparse' ? want.coords.map((x) => [...x].join(' ')).join('; ') : ''
  if (coords !== wantedCoords)
    throw new Error(`${what}: coordinates ${coords}, the reference has ${wantedCoords}`)
  const differs =
    values.length !== wanted.length ||
    values.some((x, k) => !Object.is(x, wanted[k]) && want.errors[k] !== Infinity)
  if (differs) throw new Error(`${what}: ${values.join(' ')}, the reference has ${wanted.join(' ')}`)
}
