import { stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { needsData } from '../../api/built/build.ts'
import { checkSums, sumsOf } from '../../api/built/unordered-sums.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import type { SptProgram } from '../../api/programs/program.ts'
import { SptError, valueOrError } from '../../ast/diagnostics/diagnostic.ts'
import { escapeLine } from '../../ast/diagnostics/render.ts'
import { orList } from '../../ast/diagnostics/suggest.ts'
import type { ArgSpec, Entry } from '../../backends/module.ts'
import { DEVICE_KINDS } from '../../backends/target.ts'
import { rejectSharedOverflowAt } from '../../backends/targets/cuda/limits.ts'
import { type ModuleText, TARGET_NAMES, TARGETS, targetOf } from '../../backends/targets/index.ts'
import { makeFolder } from '../../cache/disk-cache.ts'
import { withFileErrors } from '../../io/node-files.ts'
import { roundsText } from '../../ir/coordinates/rounds.ts'
import { binary, type Expr } from '../../ir/expressions/expr.ts'
import { rewriteExpr } from '../../ir/expressions/expr-tree.ts'
import { printExpr } from '../../ir/print/print-stage2.ts'
import type { Kernel3, Launch } from '../../ir/statements/loops.ts'
import { printPlan, writePlan } from '../../plan/write.ts'
import { planOn } from '../../run/compile/compiled-program.ts'
import { describedDevice } from '../../run/compile/device-limits.ts'
import type { CommandSpec } from '../arguments/command.ts'
import { optionTable } from '../arguments/option-table.ts'
import {
  BIND,
  checkSelectionInputs,
  DETERMINISTIC,
  DEVICE_PROPERTIES,
  KERNEL,
  SELECTION_OPTIONS,
  SELECTION_SIZES,
  TRUST,
} from '../arguments/options.ts'
import { checkSources } from '../arguments/paths.ts'
import { formsOn, formText, withForm } from '../forms.ts'
import { EXIT } from '../output/failure.ts'
import { progressOn } from '../output/io.ts'
import { standardStream } from '../output/outputs.ts'
import { checkNames } from '../run/bind-options.ts'
import type { KernelRequest } from '../scheduled-kernel.ts'
import { isDispatched, reportRejectedDefault, withKernel } from '../scheduled-kernel.ts'

const TARGETS_AND_PLAN = [...TARGET_NAMES, 'plan'] as const
const TARGET_LIST = orList(TARGETS_AND_PLAN)

export const emit: CommandSpec = {
  name: 'emit',
  args: 'FILE',
  count: [1, 1],
  summary: 'Print the code of a kernel for a target',
  options: optionTable`
    --target <T>  ${TARGET_LIST} (a JSON file that spt run --plan and other runtimes execute)
    --device <D>  For --target plan: cpu, webgpu or cuda (default: cpu)
    ${KERNEL}
    --schedule <S>  A schedule: gpu, or gpu(8, 32) with arguments (default: cpu for js and gpu for other
      targets if legal; auto with --bind, --size or device facts)
    ${BIND}  Data of a buffer or an axis, for automatic selection
    ${SELECTION_SIZES}
    ${DEVICE_PROPERTIES}
    ${DETERMINISTIC}
    --out <PATH>  [write]  A file (name with an extension), or a folder for one file per module
    --wide  Indices of 64 bits, for more than 2^31 - 1 elements or iterations (spt run chooses by the sizes)
    ${TRUST}
  `,
  notes: [
    'Without --schedule, the command prints the variant that the cost model predicts for --size or for the data of --bind.\nspt run may select another variant on other data. With --target plan, --schedule auto and no data, the command writes a\nfamily of at most six plans, one of which is selected for the data of each run; with --size, for data of this size. For wgsl and cuda, outer loops are bound to threads if the schedule\nbinds no loop.',
  ],
  examples: [
    'spt emit kernel.spt --target cuda --out kernel.cu',
    'spt emit kernel.spt --target wgsl --out shaders/',
    'spt emit kernel.spt --target plan --device webgpu --out kernel.json',
    'spt emit kernel.spt --target plan --schedule auto --out family.json',
    'spt emit kernel.spt --target plan --device webgpu --schedule auto --size d=64 --out family.json',
    'spt emit kernel.spt --target cuda --schedule auto --size d=128 --capability 9.0 --processors 132',
    "spt emit kernel.spt --target wgsl --schedule auto --size d=64 --size 'nnz(A)=1000000'",
    'spt emit kernel.spt --target cuda --schedule auto --bind A=graph.mtx --size d=128 --capability 9.0 --processors 132',
  ],
  async run(call) {
    const asked = call.choice('target', TARGETS_AND_PLAN)
    if (asked === undefined) return call.reject('--target is missing', { expected: TARGET_LIST })
    const isPlan = asked === 'plan'
    const device = call.choice('device', DEVICE_KINDS)
    if (!isPlan && device !== undefined)
      return call.reject('--device is for --target plan', { expected: `--target plan --device ${device}` })
    const target = isPlan ? targetOf({ kind: device ?? 'cpu' }) : asked
    const { scheduleDevice, parallel, lowering, extension } = TARGETS[target]
    const deterministic = call.flag('deterministic')
    const on = describedDevice(isPlan ? (device ?? 'cpu') : scheduleDevice, new Set(call.many('feature')))
    const isSelecting = ['schedule', ...SELECTION_OPTIONS].some((o) => call.flag(o))
    const work = async (
      request: KernelRequest,
    ): Promise<{ texts: readonly NamedText[]; program: SptProgram }> => {
      const { source, fixed, program } = request
      const sizes = request.selectionInputs()
      const paths = call.pairs('bind', 'PATH')
      // Predicted times need the stored cost models.
      if (paths.size > 0 || isPlan) (await import('../../search/calibrate/stored.ts')).installStoredModels()
      const numbers = new Map(Object.entries(sizes.params))
      const inputs = { ...sizes, ...(paths.size > 0 && { tensors: await request.readEarly(paths, numbers) }) }
      const select = () => request.select(scheduleDevice, inputs)
      const isFamily =
        isPlan && !fixed && paths.size === 0 && Object.keys(sizes.statistics ?? {}).length === 0
      // Sizes may decide the dispatch.
      const selected = isFamily && numbers.size > 0 ? await valueOrError(select) : null
      if (isFamily && (!selected || (selected instanceof SptError && needsData(selected)))) {
        const { familyOf } = await import('../../search/choice/distil.ts')
        const { params, statistics: _, ...facts } = sizes
        const onProgress = progressOn(call.io)
        const options = { facts, sizes: params, deterministic, onProgress }
        const family = await familyOf(request.dispatched, on, options)
        call.io.progress?.('')
        return { program, texts: [{ name: family.kernel, text: `${printPlan(family)}\n` }] }
      }
      if (selected instanceof SptError) throw selected
      const scheduled = fixed ?? selected ?? (await select())
      const { kernel } = scheduled
      checkNames(kernel.compilation.kernel, paths.keys(), [], fixed ? undefined : request.formatData)
      const availableForms = formsOn(kernel, scheduleDevice, inputs)
      if (!isDispatched(source, request.requested))
        checkSelectionInputs(call, source, availableForms.length > 0)
      reportRejectedDefault(call, scheduled)
      return withForm(kernel, availableForms, (k, forms) => {
        const emitted = parallel ? k.parallel() : k.sequential()
        if (deterministic) checkSums(k.name, sumsOf<Kernel>(k, on))
        if (isPlan) {
          const plan = planOn(on, emitted.compilation, { sources: program.sources, wide: call.flag('wide') })
          return {
            program,
            texts: [{ name: plan.kernel, text: `${printPlan(writePlan(plan))}\n` }],
          }
        }
        const modules = emitted.emit(target, { wide: call.flag('wide') })
        if (sizes.capability !== undefined)
          for (const m of modules) for (const e of m.entries) rejectSharedOverflowAt(sizes.capability, e)
        const texts = withLaunchComments(modules, emitted.compilation.planFor(lowering))
        return {
          program,
          texts: forms.length > 0 ? withHeader(texts, `schedule: ${formText(forms)}`) : texts,
        }
      })
    }
    const { texts, program } = await withKernel(call, scheduleDevice, work, { isSelecting })
    const out = call.one('out')
    if (out === undefined) {
      call.io.out(`${joinModules(texts).trimEnd()}\n`)
      return EXIT.ok
    }
    const isFolder = await namesFolder(out)
    if (!isFolder && target === 'wgsl' && texts.length > 1 && standardStream(out) === null)
      return call.reject(`--out ${out} cannot hold ${texts.length} WGSL modules in one file`, {
        expected: 'a folder, for one file per module',
        hint: `--out ${out.slice(0, -extname(out).length)}/`,
      })
    const files = await outputFiles(out, isFolder, texts, isPlan ? '.json' : extension)
    // Checked here, because names of files in a folder depend on the modules.
    await checkSources(
      call,
      program,
      files.map(({ path }) => ({ typed: `--out ${out}`, path })),
    )
    for (const { path, text } of files) {
      await call.write(path, text)
      if (standardStream(path) === null) call.io.err(`wrote ${escapeLine(path)}\n`)
    }
    return EXIT.ok
  },
}

interface NamedText {
  readonly name: string
  readonly text: string
}

/** Generated modules, preceded by comments with the information needed to launch them. */
function withLaunchComments(modules: readonly ModuleText[], plan: Kernel3): NamedText[] {
  let step = 0
  return modules.map((m) => {
    const lines: string[] = []
    // Steps are in order; those up to the last entry of a module, and the end of its rounds, belong to the module.
    for (const e of m.entries) {
      let s = plan.steps[step++]!
      for (; s.kind !== 'launch'; s = plan.steps[step++]!)
        lines.push(
          s.kind === 'clear' ? `// fill ${s.buffer} with zero bytes` : `// ${roundsText(s, printExpr)}`,
        )
      lines.push(signature(m, e, s))
      const after = plan.steps[step]
      if (after?.kind === 'rounds' && after.edge === 'end') {
        lines.push(`// ${roundsText(after, printExpr)}`)
        step++
      }
    }
    return { name: m.name, text: `${lines.join('\n')}\n${m.text}` }
  })
}

/** Replaces truncating divisions, for people; equal because sizes are not negative. */
const floorDivisions = (e: Expr): Expr =>
  rewriteExpr(e, (x) => (x.kind === 'binary' && x.op === 'quo' ? binary('div', x.a, x.b) : undefined))

function signature(m: ModuleText, e: Entry, launch: Launch): string {
  const argument = (a: ArgSpec): string =>
    a.kind === 'buffer'
      ? `${a.name}: ${a.dtype}[]${a.access === 'read' ? '' : ' (written)'}`
      : `${a.name}: ${a.dtype}`
  const call = `// ${e.name}(${e.args.map(argument).join(', ')})`
  if (!TARGETS[m.target].grid) return call
  const grid = launch.grid.map((x) => printExpr(floorDivisions(x))).join(' × ')
  const groups = m.target === 'wgsl' ? 'workgroups' : 'blocks'
  return `${call}\n//   ${groups}: ${grid}, of ${e.block.join(' × ')} threads`
}

const withHeader = ([first, ...remaining]: readonly NamedText[], header: string): NamedText[] =>
  first ? [{ ...first, text: `// ${header}\n${first.text}` }, ...remaining] : []

const namesFolder = async (out: string): Promise<boolean> =>
  standardStream(out) === null &&
  (/[/\\]$/.test(out) || extname(out) === '' || Boolean((await stat(out).catch(() => null))?.isDirectory()))

/** Output paths with their contents; creates the folder. */
async function outputFiles(
  out: string,
  isFolder: boolean,
  texts: readonly NamedText[],
  extension: string,
): Promise<readonly { readonly path: string; readonly text: string }[]> {
  if (!isFolder) return [{ path: out, text: joinModules(texts) }]
  await withFileErrors(out, 'write', () => makeFolder(out))
  return texts.map(({ name, text }) => ({ path: join(out, `${name}${extension}`), text }))
}

/** Concatenates modules; several modules are separated by heading comments. */
const joinModules = (texts: readonly NamedText[]): string =>
  texts
    .map(({ name, text }, k) =>
      texts.length > 1 ? `// ==== module ${k + 1} of ${texts.length}: ${name} ====\n${text}` : text,
    )
    .join('\n')
