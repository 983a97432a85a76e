import { totalmem } from 'node:os'
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { PreparedKernel } from '../../api/compiled.ts'
import { takenBy } from '../../api/format-data.ts'
import type { Kernel } from '../../api/kernel.ts'
import { type Diagnostic, fail } from '../../ast/diagnostic.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { ADDRESSES, READABLE, WRITABLE, writeTensor } from '../../io/index.ts'
import type { Kernel1 } from '../../ir/stage1.ts'
import { devices } from '../../node.ts'
import { allAxesOf } from '../../run/bind/caller-tensors.ts'
import { runOn } from '../../run/default-schedules.ts'
import type { Verification } from '../../run/verify.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { size } from '../figures.ts'
import { type Form, formsOn } from '../forms.ts'
import { BIND, DEVICE, KERNEL, SCHEDULE, SEED, SIZE, TRUST } from '../options.ts'
import {
  checkNames,
  checkOutputs,
  early,
  given,
  numbers,
  paddingOf,
  readInputs,
  readLate,
  tellingSchedules,
} from '../run/bind-options.ts'
import { builtBy } from '../run/built-at-run-time.ts'
import { Laps } from '../run/laps.ts'
import { human, json, type Report } from '../run/run-report.ts'
import { conversions, duplicatesIn, sparseSizes } from '../run/sparse.ts'
import { warmUp } from '../run/warm-up.ts'
import { scheduleCall } from '../schedule-call.ts'
import {
  chosen,
  chosenKernel,
  loadFile,
  orPlain,
  orWithout,
  reportPassedOver,
  scheduledFor,
  usedFor,
  within,
} from '../scheduled-kernel.ts'

/** Number of coordinates above which the reference computes a sample, if they are independent. */
const SAMPLE_FROM = 2 ** 27
const SAMPLED = 1000
const DEFAULT_REPEAT = 3
const MAX_REPEAT = 1_000_000

export const run: CommandSpec = {
  name: 'run',
  args: 'FILE',
  count: [1, 1],
  summary: 'Run a kernel on data',
  options: [
    KERNEL,
    SCHEDULE,
    BIND,
    SIZE,
    DEVICE,
    { flags: '--verify', about: 'Compare every output with the reference; exit 1 on a difference' },
    { flags: '--repeat <N>', about: `Number of timed runs, after a warm-up (default: ${DEFAULT_REPEAT})` },
    SEED,
    { flags: '--out <NAME=PATH>', about: 'Write an output', repeats: true, file: 'write' },
    {
      flags: '--verbose',
      about: 'Print phases with times, the values used for selection, and other variants',
    },
    { flags: '--json', about: 'Print one JSON object; times in milliseconds' },
    ...TRUST,
  ],
  notes: [
    `Reads ${READABLE.join(' ')}; writes ${WRITABLE.join(' ')}.\n${ADDRESSES}`,
    'For a dense_variable axis, bind the offsets of its segments (from 0 to the number of positions). For a buffer over\nsuch an axis, bind one value for each position: --bind p=map.npz#offsets --bind X=map.npz#values.',
    `--verify compares all elements of tensors up to ${SAMPLE_FROM / 2 ** 20} MiB. Above this size, it compares a sample of ${SAMPLED} rows if the\nrows are independent. The first line of the output states which.`,
    'Sizes are read from the shapes of bound tensors. Give other sizes and scalars with --size (0.5, -inf, nan, true).',
  ],
  examples: [
    'spt run kernel.spt --bind A=graph.mtx --size d=64 --verify',
    'spt run kernel.spt --bind A=graph.npz#adjacency --size d=64 --device webgpu --repeat 20 --json',
    'spt run kernel.spt --bind A=model.safetensors#layer.0.weight --size d=64',
    'spt run kernel.spt --bind A=a.mtx --bind B=b.npy --out C=c.npy',
  ],
  async run(call) {
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const repeat = call.integer('repeat', 1, MAX_REPEAT) ?? DEFAULT_REPEAT
    const requested = scheduleCall(call)
    const { files, seed } = given(call)
    const params = numbers(call)
    const outs = call.pairs('out', 'PATH')

    const laps = new Laps('parse', call.io)
    const program = await loadFile(call.args[0]!, call)
    return within(program, async () => {
      laps.begin('lower')
      const source = chosenKernel(program, call)
      const fixed = scheduledFor(source, requested, kind)
      if (fixed) reportPassedOver(call, fixed)
      const made = fixed && requested ? lower(fixed.kernel, kind) : fixed?.kernel
      // A choice is made by data: until then, what is bound goes by the kernel as written.
      const bindable = (made ?? source).compilation.kernel
      laps.begin('read')
      const ofFormats = usedFor(source, requested)
      const declared = fixed ? files : early(source, files, ofFormats)
      await tellingSchedules(source, () => checkNames(bindable, declared.keys(), params.keys()))
      await checkOutputs(bindable, outs)
      const read = await readInputs(bindable, declared, params)
      const known = { tensors: read, params: Object.fromEntries(params), seed }
      laps.begin('open')
      const device = await open(kind)
      try {
        laps.begin('choose')
        const decided = fixed
          ? orPlain(fixed, source, requested, device, known)
          : await chosen(source, requested, device, known)
        laps.begin('read')
        const tensors = await tellingSchedules(source, () =>
          readLate(decided.kernel.compilation.kernel, files, read, params, ofFormats),
        )
        laps.begin('lower')
        const { used, compiled } = await orWithout(call, decided, source, async (s) => {
          lower(s.kernel, kind)
          laps.begin('compile')
          return { used: s, compiled: (await s.kernel.compileUnasked(device)).compiled }
        })
        const stage1 = compiled.compilation.kernel
        const inputs = { ...known, tensors: takenBy(stage1, tensors, ofFormats) }
        laps.begin('build')
        checkMemory(compiled.estimate(inputs))
        const bound = compiled.bind(inputs)
        laps.begin('upload')
        const prepared = await compiled.prepare(bound)
        laps.begin('runs')
        const { first, runs } = await warmUp(() => prepared.run())
        const times = await prepared.time(repeat)
        const built = await builtBy(prepared)
        laps.begin('verify')
        const verification = call.flag('verify')
          ? await prepared.verify(extent(prepared.executable.bytes, seed))
          : null
        laps.begin('write')
        if (outs.size > 0) {
          // Repeated runs have gone on from their own results where a buffer is inout.
          await prepared.executable.reset()
          await prepared.run()
          const onWarning = ({ message, hint }: Diagnostic): void =>
            call.io.err(`warning: ${message}\n  = hint: ${hint}\n`)
          for (const [name, path] of outs) await writeTensor(path, await prepared.read(name), { onWarning })
        }
        laps.begin('count')
        const sparse = sparseSizes(bound)
        const spent = laps.end()
        const report: Report = {
          kernel: source.name,
          device: kind,
          deviceName: device.name,
          schedule: used.schedule,
          choice: used.chosen,
          forms: used.chosen?.schedule === null ? [] : formsOf(used.kernel, prepared, inputs),
          unorderedSums: prepared.kernel.unorderedSums,
          sizes: sizesOf(stage1, bound.params),
          built,
          ...sparse,
          duplicates: duplicatesIn(inputs.tensors, sparse.nnz),
          converted: conversions(stage1, inputs.tensors),
          zeros: paddingOf(tensors),
          bytes: prepared.executable.bytes,
          peak: 1024 * process.resourceUsage().maxRSS,
          time: {
            ...spent,
            random: bound.randomTime,
            build: spent.build - bound.randomTime,
            run: median(times),
            first,
          },
          runs: runs + repeat,
          repeat,
          random: randomNames(stage1, bound.random),
          seed,
          verification,
          written: [...outs],
        }
        prepared.free()
        compiled.release()
        call.io.out(call.flag('json') ? json(report) : human(report, call.flag('verbose')))
        return verdict(call, verification)
      } finally {
        await device.dispose()
      }
    }).finally(() => laps.end())
  },
}

const open = (kind: DeviceKind): Promise<Device> => devices[kind]()

/** Automatic forms of a kernel without a schedule, if one of them runs. */
function formsOf(
  kernel: Kernel,
  { kernel: { compilation, device } }: PreparedKernel,
  of: RunInputs,
): readonly Form[] {
  const forms = formsOn(kernel, device, of)
  const [first] = forms
  const ran = (k: Kernel): boolean =>
    runOn(k, device.kind).compilation.printedLoopSteps.join() === compilation.printedLoopSteps.join()
  return first && ran(first.kernel) ? forms : []
}

/** With the plan made that runs on a device. */
function lower(kernel: Kernel, kind: DeviceKind): Kernel {
  void runOn(kernel, kind).compilation.plan
  return kernel
}

function verdict(call: Call, v: Verification | null): number {
  for (const w of v?.warnings ?? []) call.io.err(`warning[run/little-compared]: ${w}\n`)
  if (v === null || v.ok) return EXIT.ok
  const lines = v.problems.map((p) => `  = ${p}\n`).join('')
  call.io.err(
    v.verdict === 'undecided'
      ? `error[run/nothing-compared]: the results cannot be verified\n${lines}`
      : `error[run/wrong-result]: the results differ from the reference\n${lines}`,
  )
  return EXIT.failed
}

const extent = (bytes: number, seed: number): Parameters<PreparedKernel['verify']>[0] =>
  bytes > SAMPLE_FROM ? { sample: { count: SAMPLED, seed } } : {}

/** Data lie in this machine's memory twice for a while: as they are made, and as the device has them. */
function checkMemory(bytes: number): void {
  const have = totalmem()
  if (2 * bytes > have)
    fail({
      code: 'run/out-of-memory',
      message: `the tensors take ${size(bytes)}, and this machine has ${size(have)} of memory`,
      expected: 'twice the size of the tensors',
      hint: 'use smaller sizes, or a sparse axis instead of a dense one',
    })
}

/** The upper of the two in the middle. */
const median = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)] ?? 0

const sizesOf = (kernel: Kernel1, params: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries(kernel.params.filter((p) => !p.measured).map((p) => [p.name, params.get(p.name) ?? 0]))

/** Names of random inputs; axes are distinguished from tensors, because their coordinates are random. */
const randomNames = (kernel: Kernel1, names: readonly string[]): string[] =>
  names.map((name) => (allAxesOf(kernel).has(name) ? `axis ${name}` : name))
