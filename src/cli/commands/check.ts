import type { InstructionVerifier } from '../../api/instruction-verify.ts'
import type { SptProgram } from '../../api/program.ts'
import { coords } from '../../api/tensors.ts'
import { type Diagnostic, orRefused, type Span, SptError } from '../../ast/diagnostic.ts'
import type { Program } from '../../ast/linked-program.ts'
import { escapedLine } from '../../ast/render.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { TARGETS, type TargetName } from '../../backends/targets/index.ts'
import { BUILD } from '../../cache/build.ts'
import { cacheFolder, cacheKey, openCache } from '../../cache/disk-cache.ts'
import { coordinatesAt } from '../../ir/arrays.ts'
import type { AnyFormat } from '../../ir/format.ts'
import { devices } from '../../node.ts'
import type { Compilation } from '../../run/compile.ts'
import type { DeviceKind } from '../../runtime/device.ts'
import type { CoordTensor } from '../../storage/tensor.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT, isFailure, showDiagnostics } from '../failure.ts'
import type { Io } from '../io.ts'
import { TRUST } from '../options.ts'
import { parseFile, programFrom, verifies, within } from '../scheduled-kernel.ts'
import { StageRuns } from '../verify-stages.ts'

export const check: CommandSpec = {
  name: 'check',
  args: 'FILE…',
  count: [1, Number.POSITIVE_INFINITY],
  summary: 'Find the errors in programs',
  options: [
    {
      flags: '--device <D>',
      about: 'Compare instructions on cpu, webgpu or cuda with their bodies; exit 1 if the results differ',
    },
    {
      flags: '--verify-stages',
      about:
        'Check the invariants of each stage after every step and pass, and run stages 2 and 3 on small random data',
    },
    ...TRUST,
  ],
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
    const { args } = call
    const kind = call.choice('device', DEVICE_KINDS)
    const verifier = kind && (await verifierOn(kind))
    try {
      // Without the device, it is said at once.
      await verifier?.device()
      let ok = true
      for (const path of args) ok = (await checkFile(path, call, verifier)) && ok
      return ok ? EXIT.ok : EXIT.failed
    } finally {
      await verifier?.dispose()
    }
  },
}

async function verifierOn(kind: DeviceKind): Promise<InstructionVerifier> {
  const { InstructionVerifier } = await import('../../api/instruction-verify.ts')
  return new InstructionVerifier(() => devices[kind]())
}

async function checkFile(
  path: string,
  call: Call,
  verifier: InstructionVerifier | undefined,
): Promise<boolean> {
  const { io } = call
  try {
    const stages = call.flag('verify-stages') ? await StageRuns.load() : undefined
    const verify = stages !== undefined || verifies(call)
    const parsed = await parseFile(path, call)
    const passed = verdictsFor(parsed, io)
    const before = verifier || verify ? undefined : await passed.load()
    const program = before ? undefined : await programFrom(parsed, call, verify)
    const found = before ?? (await declarations(program!, parsed.entry, io, stages))
    if (found && !before) await passed.store(found)
    const tested = verifier ? await testInstructions(program!, io, verifier) : { lines: [], wrong: 0 }
    const { wrong } = tested
    if (wrong > 0)
      io.out(`${escapedLine(path)}: ${wrong} of ${tested.lines.length + wrong} instructions wrong\n`)
    else if (found)
      io.out(`${escapedLine(path)}: ok${found.length > 0 ? `, ${found.join(', ')}` : ', nothing declared'}\n`)
    for (const line of [...(stages?.lines ?? []), ...tested.lines]) io.out(`  ${line}\n`)
    return wrong === 0 && found !== null
  } catch (error) {
    if (!isFailure(error)) throw error
    showDiagnostics(error, io)
    return false
  }
}

/** Programs whose check is remembered. */
const MOST = 1024

/** Cache of the declarations of programs without errors, keyed by their sources and this build. */
function verdictsFor(parsed: Program, io: Io) {
  const cache = openCache(BUILD === '' ? undefined : cacheFolder(undefined, io.env), 'checked', MOST)
  const key = cacheKey(['checked', BUILD, ...[...parsed.sources.values()].flatMap((s) => [s.name, s.text])])
  return {
    async load(): Promise<readonly string[] | undefined> {
      const payload = await cache.load(key)
      return payload && (JSON.parse(Buffer.from(payload).toString()) as string[])
    },
    store: (found: readonly string[]) => cache.store(key, Buffer.from(JSON.stringify(found))),
  }
}

/**
 * Kernels, and what the file itself declares; imported declarations are checked and not listed. `null`, after showing the errors,
 * where schedules have some.
 */
async function declarations(
  program: SptProgram,
  entry: string,
  io: Io,
  stages: StageRuns | undefined,
): Promise<readonly string[] | null> {
  const found: string[] = []
  const codes = new Set<string>()
  const complaints = new Set<string>()
  const shown = (error: unknown): void => {
    if (!isFailure(error)) throw error
    const [{ code }] = error.diagnostics as [Diagnostic]
    // What uses a schedule that is too long is too long as well.
    if (code === 'schedule/too-many-steps' && codes.has(code)) return
    // A schedule and its format may be rejected for the same reason.
    const complaint = JSON.stringify(error.diagnostics)
    if (complaints.has(complaint)) return
    complaints.add(complaint)
    if (codes.size > 0) io.err('\n')
    codes.add(code)
    showDiagnostics(error, io)
  }
  for (const name of program.kernels) {
    const kernel = program.kernel(name)
    await within(program, () => kernel.compilation.plan)
    for (const k of stages ? new Set([kernel, kernel.parallel()]) : [])
      await within(program, () =>
        stages!.check(k === kernel ? name : `${name} in parallel`, k.compilation),
      ).catch(shown)
    const only = new Map<string, string>()
    for (const schedule of kernel.schedules.filter((s) => !kernel.parameters(s).some((p) => p.required)))
      await within(program, () => {
        const { compilation } = kernel.schedule(schedule)
        const what = `${name}.${schedule}`
        if (legalOn(compilation, what) === 'lanes') only.set(schedule, `${schedule} on cuda alone`)
        stages?.check(what, compilation)
      }).catch(shown)
    const list = [...kernel.schedules.map((s) => only.get(s) ?? s), ...kernel.choices]
    const { spaces } = kernel
    const parts = [
      ...(list.length > 0 ? [`schedules ${list.join(', ')}`] : []),
      ...(spaces.length > 0 ? [`spaces ${spaces.join(', ')}`] : []),
    ]
    found.push(`kernel ${name}${parts.length > 0 ? ` (${parts.join('; ')})` : ''}`)
  }
  const isOwn = ({ span }: { readonly span?: Span | undefined }): boolean => !span || span.source === entry
  for (const [name, format] of program.formats) {
    const omits = await within(program, () => tryFormat(program, name, format)).catch(shown)
    if (isOwn(format)) found.push(`format ${name}${omits ? ` (omits elements: ${omits})` : ''}`)
  }
  const { memories, instructions } = program.families
  for (const [name, { params, span }] of memories)
    if (isOwn({ span })) found.push(`memory ${name}${listed(params)}`)
  for (const [name, { params, span }] of instructions)
    if (isOwn({ span })) found.push(`instr ${name}${listed(params)}`)
  return codes.size === 0 ? found : null
}

/**
 * A format that needs no arguments, as its first use does: it is tried on small tensors, those of lists by bringing some into
 * it, of which it may hold too little. Returns an omitted coordinate. @throws SptError `format/…`
 */
function tryFormat(program: SptProgram, name: string, { kind, params }: AnyFormat): string | null {
  if (params.some((p) => p.default === null && !p.measured)) return null
  const whole = program.format(name)
  const orders = kind === 'family' ? [2, 3, 1, 4] : [whole.over.length]
  const tried = orders.map((order) =>
    orRefused(() => {
      const format = whole.ofOrder(order)
      for (const every of [1, 2, 3, 5]) {
        const made = orRefused(() => format.convert(smallTensor(order, every)))
        if (made instanceof SptError && made.diagnostics[0]!.code === 'format/not-inverse') throw made
      }
    }),
  )
  const [refused] = tried
  if (refused instanceof SptError && tried.every((t) => t instanceof SptError)) throw refused
  return kind === 'family' ? null : whole.omits
}

/** One of `every` few coordinates. */
function smallTensor(order: number, every: number): CoordTensor {
  const shape = Array.from({ length: order }, (_, d) => 4 + d)
  const size = shape.reduce((n, x) => n * x, 1)
  const at = Array.from({ length: Math.ceil(size / every) }, (_, e) => coordinatesAt(e * every, shape))
  return coords(
    shape,
    shape.map((_, d) => at.map((c) => c[d]!)),
    at.map(() => 1),
  )
}

/**
 * Checks that the schedule is legal without warp-level exchange (`all`), or only with it (`lanes`).
 * @throws SptError naming the schedule, if it is illegal in both cases
 */
function legalOn(compilation: Compilation, what: string): 'all' | 'lanes' {
  const lowers = (target: TargetName): SptError | null => {
    const plan = orRefused(() => compilation.checkFor(TARGETS[target].lowering))
    return plan instanceof SptError ? plan : null
  }
  const refused = lowers('wgsl')
  if (!refused) return 'all'
  if (!lowers('cuda')) return 'lanes'
  const message = (d: Diagnostic): string => `${d.message}, under schedule ${what}`
  throw new SptError(refused.diagnostics.map((d) => ({ ...d, message: message(d) })))
}

/** A line for each instruction that is not wrong; errors are shown of those that are. */
async function testInstructions(
  program: SptProgram,
  io: Io,
  verifier: InstructionVerifier,
): Promise<{ readonly lines: readonly string[]; readonly wrong: number }> {
  const all = [...program.instructions]
  const instructions = all.map(([, i]) => i)
  const device = await verifier.device()
  const lines: string[] = []
  for (const [name, instr] of all) {
    const { kind, why } = await verifier.verify(instr, instructions)
    if (kind !== 'wrong') lines.push(`${kind.padEnd(9)}${name}${why.length > 0 ? `: ${why.join('; ')}` : ''}`)
    else {
      const message = `on ${device.kind}, ${name} does not do what its body says: ${why.join('; ')}`
      const at = instr.span ? { span: instr.span } : {}
      const error = new SptError({
        code: 'check/wrong-instruction',
        message,
        ...at,
        hint: 'coordinates are those of the arrays that its tiles are parts of, block by block',
      })
      error.sources = program.sources
      showDiagnostics(error, io)
    }
  }
  return { lines, wrong: all.length - lines.length }
}

const listed = (params: readonly { readonly name: string }[]): string =>
  params.length > 0 ? `(${params.map((p) => p.name).join(', ')})` : ''
