import { coords } from '../../api/inputs/tensors.ts'
import type { SptProgram } from '../../api/programs/program.ts'
import { type Diagnostic, resultOrError, type Span, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import type { Program } from '../../ast/imports/linked-program.ts'
import { kernelText } from '../../ast/print/print-expr.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { TARGETS, type TargetName } from '../../backends/targets/index.ts'
import { BUILD } from '../../cache/build.ts'
import { cacheFolder, cacheKey, openCache } from '../../cache/disk-cache.ts'
import type { InstructionVerifier } from '../../instruction-tests/instruction-verify.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import { coordinatesAt } from '../../ir/values/arrays.ts'
import { devices } from '../../node.ts'
import { installPackageFiles } from '../../node-programs.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { CoordTensor } from '../../storage/tensor.ts'
import type { Call, CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import { TRUST } from '../arguments/options.ts'
import { constantCalls, StageRuns, showAllWarnings } from '../dispatch-checks.ts'
import { EXIT, isFailure, showDiagnostics } from '../output/failure.ts'
import type { Io } from '../output/io.ts'
import { isVerifying, parseFile, programFrom, withSourcesOf } from '../scheduled-kernel.ts'

export const check: CommandSpec = {
  name: 'check',
  args: 'FILE…',
  count: [1, Number.POSITIVE_INFINITY],
  summary: 'Find the errors in programs',
  options: optionTable`
    --device <D>  Compare instructions on cpu, webgpu or cuda with their bodies; exit 1 if the results
      differ
    --verify-stages  Check the invariants of each stage after every step and pass, and run stages 2 and 3 on
      small random data
    ${TRUST}
  `,
  notes: [
    'The command checks names, types and shapes. It applies and lowers every schedule whose parameters all have defaults,\nso an illegal step is reported without data or a device. Formats without parameters are tested on small tensors.',
    'With --device, each declared instruction (with parameters: its examples) runs on tiles inside larger arrays, and must\nnot change elements outside its tiles. Instructions that the device does not support are reported as untested.',
    'With --verify-stages, interpreters run the loops (stage 2) and the plans (stage 3) for every target, under every schedule,\nand compare the results with the reference. A difference or a broken invariant is an error of the compiler,\nand is reported with the kernel, the schedule and the step or pass. SPT_VERIFY=1 checks the invariants in every command.',
  ],
  examples: [
    'spt check kernel.spt',
    'spt check *.spt',
    'spt check sparsetile/kernels/instructions/lanes.spt --device webgpu',
    'spt check kernel.spt --verify-stages',
  ],
  async run(call) {
    installPackageFiles()
    const { args } = call
    const kind = call.choice('device', DEVICE_KINDS)
    await using verifier = kind && (await verifierOn(kind))
    // A missing device is reported before any file is checked.
    await verifier?.device()
    let ok = true
    for (const path of args) ok = (await checkFile(path, call, verifier)) && ok
    return ok ? EXIT.ok : EXIT.failed
  },
}

async function verifierOn(kind: DeviceKind): Promise<InstructionVerifier> {
  const { InstructionVerifier } = await import('../../instruction-tests/instruction-verify.ts')
  return new InstructionVerifier(() => devices[kind]())
}

async function checkFile(
  path: string,
  call: Call,
  verifier: InstructionVerifier | undefined,
): Promise<boolean> {
  const { io } = call
  try {
    const stages = call.flag('verify-stages') ? new StageRuns() : undefined
    const verify = stages !== undefined || isVerifying(call)
    const parsed = await parseFile(path, call)
    const results = checkCache(parsed, io)
    const cached = verifier || verify ? undefined : await results.load()
    const program = cached ? undefined : await programFrom(parsed, call, verify)
    const declared = cached ?? (await checkDeclarations(program!, parsed, io, stages))
    const warnings = program ? await showAllWarnings(program, io) : 0
    if (declared && !cached && warnings === 0) await results.store(declared)
    const tests = verifier ? await testInstructions(program!, io, verifier) : { lines: [], failures: 0 }
    const { failures } = tests
    if (failures > 0)
      io.out(`${escapeLine(path)}: ${failures} of ${tests.lines.length + failures} instructions wrong\n`)
    else if (declared)
      io.out(
        `${escapeLine(path)}: ok${declared.length > 0 ? `, ${declared.join(', ')}` : ', nothing declared'}\n`,
      )
    for (const line of [...(stages?.lines ?? []), ...tests.lines]) io.out(`  ${line}\n`)
    return failures === 0 && declared !== null
  } catch (error) {
    if (!isFailure(error)) throw error
    showDiagnostics(error, io)
    return false
  }
}

const MAX_ENTRIES = 1024

interface Named {
  readonly name: string
}

const identifiers = (items: readonly { readonly name: Named }[]): readonly Named[] => items.map((x) => x.name)

/** Cache of the declarations of programs without errors, keyed by their sources and this build. */
function checkCache(parsed: Program, io: Io) {
  const cache = openCache(BUILD === '' ? undefined : cacheFolder(undefined, io.env), 'checked', MAX_ENTRIES)
  const key = cacheKey(['checked', BUILD, ...[...parsed.sources.values()].flatMap((s) => [s.name, s.text])])
  return {
    async load(): Promise<readonly string[] | undefined> {
      const payload = await cache.load(key)
      return payload && (JSON.parse(Buffer.from(payload).toString()) as string[])
    },
    store: (lines: readonly string[]) => cache.store(key, Buffer.from(JSON.stringify(lines))),
  }
}

/**
 * Lists kernels, and declarations of the file itself; imported declarations are checked, but not listed. Returns `null` after
 * showing errors of schedules or formats.
 */
async function checkDeclarations(
  program: SptProgram,
  { entry, files, monoids, functions }: Program,
  io: Io,
  stages: StageRuns | undefined,
): Promise<readonly string[] | null> {
  const lines: string[] = []
  const codes = new Set<string>()
  const reported = new Set<string>()
  const report = (error: unknown): void => {
    if (!isFailure(error)) throw error
    const [{ code }] = error.diagnostics as [Diagnostic]
    // A schedule that uses one with too many steps has too many steps, too.
    if (code === 'schedule/too-many-steps' && codes.has(code)) return
    // A schedule and its format may be rejected for the same reason.
    const key = JSON.stringify(error.diagnostics)
    if (reported.has(key)) return
    reported.add(key)
    if (codes.size > 0) io.err('\n')
    codes.add(code)
    showDiagnostics(error, io)
  }
  for (const name of program.kernels) {
    const kernel = program.kernel(name)
    await withSourcesOf(program, () => kernel.compilation.plan)
    for (const k of stages ? new Set([kernel, kernel.parallel()]) : [])
      await withSourcesOf(program, () =>
        stages!.check(k === kernel ? name : `${name} in parallel`, k.compilation),
      ).catch(report)
    const cudaOnly = new Map<string, string>()
    for (const schedule of kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required)))
      await withSourcesOf(program, async () => {
        const { compilation } = kernel.schedule(schedule)
        const label = `${name}.${schedule}`
        if (supportedTargets(compilation, label) === 'lanes')
          cudaOnly.set(schedule, `${schedule} on cuda alone`)
        await stages?.check(label, compilation)
      }).catch(report)
    for (const call of constantCalls(kernel)) await withSourcesOf(program, call.apply).catch(report)
    const schedules = [...kernel.schedules.map((s) => cudaOnly.get(s) ?? s), ...kernel.dispatches]
    const { spaces } = kernel
    const parts = [
      ...(schedules.length > 0 ? [`schedules ${schedules.join(', ')}`] : []),
      ...(spaces.length > 0 ? [`spaces ${spaces.join(', ')}`] : []),
    ]
    lines.push(`kernel ${name}${parts.length > 0 ? ` (${parts.join('; ')})` : ''}`)
  }
  const isInFile = ({ span }: { readonly span?: Span | undefined }): boolean => !span || span.source === entry
  for (const [name, format] of program.formats) {
    const omitted = await withSourcesOf(program, () => tryFormat(program, name, format)).catch(report)
    if (isInFile(format)) lines.push(`format ${name}${omitted ? ` (omits elements: ${omitted})` : ''}`)
  }
  const list = (noun: string, name: string, span: Span | undefined, params: readonly Named[] = []): void => {
    const names = params.map((p) => p.name).join(', ')
    if (isInFile({ span })) lines.push(`${noun} ${name}${names && `(${names})`}`)
  }
  const { memories, instructions } = program.families
  for (const [name, { params, span }] of memories) list('memory', name, span, params)
  for (const [name, { params, span }] of instructions) list('instr', name, span, params)
  for (const { name, fields, span } of monoids.values()) list('monoid', name.name, span, identifiers(fields))
  for (const { name, params, span } of functions.values())
    list('function', name.name, span, identifiers(params))
  for (const d of files.get(entry)!.decls)
    if (d.kind === 'table') list('dispatch', kernelText(d.kernel, d.types), d.span)
  return codes.size === 0 ? lines : null
}

/**
 * Tests a format without required arguments on small tensors, as its first use does. Formats with lists convert tensors, which
 * may exceed their capacity. Returns an omitted coordinate. @throws SptError `format/…`
 */
function tryFormat(program: SptProgram, name: string, { kind, params }: AnyFormat): string | null {
  if (params.some((p) => p.default === null && !p.measured)) return null
  const generic = program.format(name)
  const orders = kind === 'family' ? [2, 3, 1, 4] : [generic.dimensions.length]
  const attempts = orders.map((order) =>
    resultOrError(() => {
      const format = generic.withOrder(order)
      for (const stride of [1, 2, 3, 5]) {
        const converted = resultOrError(() => format.convert(smallTensor(order, stride)))
        if (converted instanceof SptError && converted.code === 'format/not-inverse') throw converted
      }
    }),
  )
  const [failure] = attempts
  if (failure instanceof SptError && attempts.every((t) => t instanceof SptError)) throw failure
  return kind === 'family' ? null : generic.omittedCoordinate
}

/** A tensor with every `stride`-th coordinate of a small shape. */
function smallTensor(order: number, stride: number): CoordTensor {
  const shape = Array.from({ length: order }, (_, d) => 4 + d)
  const size = shape.reduce((n, x) => n * x, 1)
  const positions = Array.from({ length: Math.ceil(size / stride) }, (_, e) =>
    coordinatesAt(e * stride, shape),
  )
  return coords(
    shape,
    shape.map((_, d) => positions.map((c) => c[d]!)),
    positions.map(() => 1),
  )
}

/**
 * Checks that the schedule is legal without warp-level exchange (`all`), or only with it (`lanes`).
 * @throws SptError naming the schedule, if it is illegal in both cases
 */
function supportedTargets(compilation: Compilation, label: string): 'all' | 'lanes' {
  const loweringError = (target: TargetName): SptError | null => {
    const plan = resultOrError(() => compilation.checkFor(TARGETS[target].lowering))
    return plan instanceof SptError ? plan : null
  }
  const failure = loweringError('wgsl')
  if (!failure) return 'all'
  if (!loweringError('cuda')) return 'lanes'
  const message = (d: Diagnostic): string => `${d.message}, under schedule ${label}`
  throw new SptError(failure.diagnostics.map((d) => ({ ...d, message: message(d) })))
}

/** Runs the instructions. Returns a line for each correct or untested one, and shows an error for each wrong one. */
async function testInstructions(
  program: SptProgram,
  io: Io,
  verifier: InstructionVerifier,
): Promise<{ readonly lines: readonly string[]; readonly failures: number }> {
  const entries = [...program.instructions]
  const instructions = entries.map(([, i]) => i)
  const device = await verifier.device()
  const lines: string[] = []
  for (const [name, instr] of entries) {
    const { kind, why } = await verifier.verify(instr, instructions)
    if (kind !== 'wrong') lines.push(`${kind.padEnd(9)}${name}${why.length > 0 ? `: ${why.join('; ')}` : ''}`)
    else {
      const message = `on ${device.kind}, ${name} differs from its body: ${why.join('; ')}`
      const location = instr.span ? { span: instr.span } : {}
      const error = new SptError({
        code: 'check/wrong-instruction',
        message,
        ...location,
        hint: 'the coordinates refer to the whole arrays, which contain the tiles',
      })
      error.sources = program.sources
      showDiagnostics(error, io)
    }
  }
  return { lines, failures: entries.length - lines.length }
}
