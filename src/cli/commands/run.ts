/** Bytes above which the reference computes a sample of rows, if rows are independent. */
import { readFile } from 'node:fs/promises'
import { totalmem } from 'node:os'
import type { Binding } from '../../api/built/binding.ts'
import { buildDefault } from '../../api/built/build.ts'
import type { RunInputs } from '../../api/inputs/bound-inputs.ts'
import { flatInputs } from '../../api/inputs/flat-inputs.ts'
import { formatInputsFor } from '../../api/inputs/format-input-binding.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { loadPlan } from '../../api/plans/loaded-plan.ts'
import { type Diagnostic, failWith } from '../../ast/diagnostics/diagnostic.ts'
import type { WorkOptions } from '../../ast/work.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { ADDRESSES, READABLE, WRITABLE, writeTensor } from '../../io/index.ts'
import { withFileErrors } from '../../io/node-files.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { devices } from '../../node.ts'
import { installPackageFiles } from '../../node-programs.ts'
import { isFamily, readFamily } from '../../plan/family-codec.ts'
import { readPlan } from '../../plan/read.ts'
import type { Plan, PlanFamily } from '../../plan/schema.ts'
import { allAxesOf } from '../../run/bind/bind-plan.ts'
import { runOn } from '../../run/compile/program.ts'
import type { Verification } from '../../run/verify/verify.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { BIND, DETERMINISTIC, DEVICE, KERNEL, SCHEDULE, SEED, SIZE, TRUST } from '../arguments/options.ts'
import { showWarnings } from '../dispatch-checks.ts'
import { type Form, formsOn } from '../forms.ts'
import { EXIT } from '../output/failure.ts'
import { size } from '../output/figures.ts'
import { bindOptions, checkOutputs, paddingOf, readInputs, sizeOptions } from '../run/bind-options.ts'
import { PhaseTimer, warmUp } from '../run/phase-timer.ts'
import { builtFormats, type Report, reportJson, reportText } from '../run/run-report.ts'
import { conversions, duplicatesIn, sparseSizes } from '../run/sparse-sizes.ts'
import { savePath, saveResults, withWeights } from '../run/weights.ts'
import { reportRejectedDefault, withKernel } from '../scheduled-kernel.ts'

const SAMPLE_FROM = 2 ** 27
const SAMPLED = 1000
const DEFAULT_REPEAT = 3
const MAX_REPEAT = 1_000_000

/** The schedule that the latest run selected on the device; undefined for a fixed schedule. */
async function alternativeOf({ executable, code }: Binding): Promise<string | undefined> {
  const { branches } = code.program.plan
  if (!branches) return undefined
  const [taken] = await executable.values(branches.choice)
  return branches.schedules[Number(taken)]!.text
}

export const run: CommandSpec = {
  name: 'run',
  args: '[FILE]',
  count: [0, 1],
  summary: 'Run a kernel on data',
  options: optionTable`
    --plan <FILE>  [read]  Run a plan of spt emit --target plan instead of FILE
    ${KERNEL}  [without plan]
    ${SCHEDULE}  [without plan]
    ${BIND}
    --weights <PATH>  [read]  A model file (.safetensors, .npz): inputs without --bind are bound by name
    ${SIZE}
    ${DEVICE}
    ${DETERMINISTIC}  [without plan]
    --verify  [without plan]  Compare every output with the reference; exit 1 on a difference
    --repeat <N>  [without plan]  Number of timed runs, after a warm-up (default: ${DEFAULT_REPEAT})
    ${SEED}
    --max-rounds <N>  Limit on rounds with a condition (default: 10000)
    --out <NAME=PATH>  [repeats, write]  Write an output
    --save <PATH>  [write]  Write all results and updated inputs to a .safetensors file
    --verbose  [without plan]  Print phases with times, the values used for selection, and other variants
    --json  Print one JSON object; times in milliseconds
    ${TRUST}  [without plan]
  `,
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
    'spt run model.spt --weights model.safetensors --bind X=tokens.npy --save results.safetensors',
    'spt run --plan kernel.json --bind A=a.mtx --bind B=b.npy --out C=c.npy',
  ],
  async run(call) {
    installPackageFiles()
    const plan = call.one('plan')
    if (plan !== undefined) {
      const [file] = call.args
      if (file !== undefined)
        call.reject(`${file} has no effect with --plan`, { expected: 'a .spt file, or --plan FILE' })
      return runPlan(call, plan)
    }
    if (call.args.length === 0)
      return call.reject('FILE is missing', { expected: 'a .spt file, or --plan FILE' })
    const kind = call.choice('device', DEVICE_KINDS) ?? 'cpu'
    const deterministic = call.flag('deterministic')
    const repeat = call.integer('repeat', 1, MAX_REPEAT) ?? DEFAULT_REPEAT
    const { files: given, seed, maxRounds } = bindOptions(call)
    const params = sizeOptions(call)
    const outputs = call.pairs('out', 'PATH')

    const timer = new PhaseTimer('parse', call.io)
    return withKernel(call, kind, async (request) => {
      timer.begin('lower')
      const { source, fixed } = request
      if (fixed) reportRejectedDefault(call, fixed)
      showWarnings(source, request.requested?.name ?? 'auto', call.io)
      if (fixed && request.requested) lower(fixed.kernel, kind)
      timer.begin('read')
      await checkOutputs(request.bindable, outputs)
      const save = await savePath(call)
      const files = await withWeights(call, source.source, given)
      const earlyTensors = await request.readEarly(files, params)
      const earlyInputs = { tensors: earlyTensors, params: Object.fromEntries(params), seed, maxRounds }
      timer.begin('open')
      await using device = await devices[kind]()
      timer.begin('choose')
      const scheduled = await request.schedule(device, earlyInputs)
      timer.begin('read')
      const tensors = await request.readRemaining(scheduled, files, earlyTensors, params)
      timer.begin('lower')
      const { used: executed, compiled } = await request.withFallback(scheduled, async (s) => {
        lower(s.kernel, kind)
        timer.begin('compile')
        return { used: s, compiled: (await buildDefault(s.kernel, device, { deterministic })).built }
      })
      const stage1 = compiled.compilation.kernel
      const inputs = { ...earlyInputs, tensors: formatInputsFor(stage1, tensors, request.formatData) }
      timer.begin('build')
      checkMemory(compiled.estimateBytes(...flatInputs(inputs)))
      const [bindings, options] = flatInputs(inputs)
      const onProgress: WorkOptions['onProgress'] = ({ phase }) => phase === 'upload' && timer.begin(phase)
      const prepared = await compiled.bind(bindings, { ...options, onProgress })
      const { bound } = prepared.executable
      timer.begin('runs')
      const { first, runs } = await warmUp(() => prepared.run())
      const times = await prepared.time(repeat)
      const built = await builtFormats(prepared)
      timer.begin('verify')
      const verification = call.flag('verify')
        ? await prepared.verify(verifyOptions(prepared.executable.bytes, seed))
        : null
      timer.begin('write')
      if (outputs.size > 0 || save !== undefined) {
        // Repeated runs have updated inout buffers, so these are reset.
        await prepared.executable.reset()
        await prepared.run()
        const onWarning = ({ message, hint }: Diagnostic): void =>
          call.io.err(`warning: ${message}\n  = hint: ${hint}\n`)
        for (const [name, path] of outputs) await writeTensor(path, await prepared.get(name), { onWarning })
        if (save !== undefined) await saveResults(save, source.source, (name) => prepared.get(name))
      }
      timer.begin('count')
      const sparse = sparseSizes(bound)
      const phases = timer.end()
      const report: Report = {
        kernel: source.name,
        device: kind,
        deviceName: device.name,
        schedule: (await alternativeOf(prepared)) ?? executed.schedule,
        selection: executed.selection,
        forms: executed.selection?.schedule === null ? [] : formsOf(executed.kernel, prepared, inputs),
        unorderedSums: prepared.code.unorderedSums,
        sizes: sizesOf(stage1, bound.params),
        built,
        ...sparse,
        duplicates: duplicatesIn(inputs.tensors, sparse.nnz),
        converted: conversions(stage1, inputs.tensors),
        zeros: paddingOf(tensors),
        bytes: prepared.executable.bytes,
        peak: 1024 * process.resourceUsage().maxRSS,
        time: {
          ...phases,
          random: bound.randomTime,
          build: phases.build - bound.randomTime,
          run: median(times),
          first,
        },
        runs: runs + repeat,
        repeat,
        random: randomNames(stage1, bound.random),
        seed,
        verification,
        written: [...outputs],
      }
      prepared.free()
      compiled.release()
      call.io.out(call.flag('json') ? reportJson(report) : reportText(report, call.flag('verbose')))
      return exitCode(call, verification)
    }).finally(() => timer.end())
  },
}

/** Automatic forms of a kernel without a schedule, if one of them runs. */
function formsOf(
  kernel: Kernel,
  { code: { compilation, device } }: Binding,
  inputs: RunInputs,
): readonly Form[] {
  const forms = formsOn(kernel, device, inputs)
  const [first] = forms
  const hasRun = (k: Kernel): boolean =>
    runOn(k, device.kind).compilation.printedLoopSteps.join() === compilation.printedLoopSteps.join()
  return first && hasRun(first.kernel) ? forms : []
}

/** Computes the plan for a device, so that the phase `lower` includes it. */
function lower(kernel: Kernel, kind: DeviceKind): void {
  void runOn(kernel, kind).compilation.plan
}

function exitCode(call: Call, v: Verification | null): number {
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

const verifyOptions = (bytes: number, seed: number): Parameters<Binding['verify']>[0] =>
  bytes > SAMPLE_FROM ? { sample: { count: SAMPLED, seed } } : {}

/** Checks that host memory can hold the tensors twice: as bound, and as copied for the device. @throws SptError `run/out-of-memory` */
function checkMemory(bytes: number): void {
  const available = totalmem()
  if (2 * bytes > available)
    failWith(
      'run/out-of-memory',
      `the tensors take ${size(bytes)}, and this machine has ${size(available)} of memory`,
      { expected: 'twice the size of the tensors', hint: 'use smaller sizes, or make a dense axis sparse' },
    )
}

/** Median; the upper one for an even number of samples. */
const median = (times: readonly number[]): number =>
  times.toSorted((a, b) => a - b)[Math.floor(times.length / 2)]!

const sizesOf = (kernel: Kernel1, params: ReadonlyMap<string, number>): Record<string, number> =>
  Object.fromEntries(kernel.params.filter((p) => !p.measured).map((p) => [p.name, params.get(p.name) ?? 0]))

/** Names of random inputs; axes are distinguished from tensors, because their coordinates are random. */
const randomNames = (kernel: Kernel1, names: readonly string[]): string[] =>
  names.map((name) => (allAxesOf(kernel).has(name) ? `axis ${name}` : name))

// `--plan`: runs a stored plan.

/** Reads a JSON file. Throws SptError `plan/malformed`. */
async function planIn(path: string): Promise<Plan | PlanFamily> {
  const text = await withFileErrors(path, 'read', () => readFile(path, 'utf8'))
  const json = ((): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return failWith('plan/malformed', `'${path}' is not JSON`, {
        expected: 'a plan',
        hint: 'spt emit kernel.spt --target plan --out plan.json writes a plan',
      })
    }
  })()
  return json as Plan | PlanFamily
}

export async function runPlan(call: Call, path: string): Promise<number> {
  const plan = await planIn(path)
  const family = isFamily(plan) ? readFamily(plan) : null
  const { device: kind, binding } = family?.plans[0] ?? readPlan(plan as Plan)
  const kernel = family?.kernel ?? binding
  const { files: given, seed, maxRounds } = bindOptions(call)
  const params = sizeOptions(call)
  const outputs = call.pairs('out', 'PATH')
  await checkOutputs(kernel, outputs)
  const save = await savePath(call)
  const files = await withWeights(call, kernel, given)
  const tensors = await readInputs(kernel, files, params)
  await using device = await devices[call.choice('device', ['cpu', 'webgpu', 'cuda']) ?? kind]()
  const loaded = await loadPlan(plan, device)
  const bound = await loaded.bind({ ...tensors, ...Object.fromEntries(params) }, { seed, maxRounds })
  const start = performance.now()
  await bound.run()
  const milliseconds = performance.now() - start
  for (const [name, to] of outputs) await writeTensor(to, await bound.get(name))
  if (save !== undefined) await saveResults(save, kernel, (name) => bound.get(name))
  const random = randomNames(kernel, bound.executable.bound.random)
  const schedule = (await alternativeOf(bound)) ?? bound.selection?.text ?? (plan as Plan).schedule
  bound.free()
  const report = { kernel: plan.kernel, schedule, device: device.name, milliseconds, random }
  call.io.out(
    call.flag('json')
      ? `${JSON.stringify({ ...report, written: Object.fromEntries(outputs) })}\n`
      : `${[
          `${report.kernel}${report.schedule ? `.${report.schedule}` : ''} on ${device.name}: first run ${milliseconds.toPrecision(3)} ms`,
          ...(random.length > 0 ? [`random: ${random.join(', ')} (seed ${seed})`] : []),
          ...[...outputs].map(([name, to]) => `${name} written to ${to}`),
        ].join('\n')}\n`,
  )
  return EXIT.ok
}
