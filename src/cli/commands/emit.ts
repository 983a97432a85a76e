import { stat } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { RunInputs } from '../../api/bound-inputs.ts'
import type { Used } from '../../api/format-data.ts'
import type { Kernel } from '../../api/kernel.ts'
import { escapedLine } from '../../ast/render.ts'
import { orList } from '../../ast/suggest.ts'
import type { ModuleText } from '../../backends/emit.ts'
import type { ArgSpec, Entry } from '../../backends/module.ts'
import { refuseSharedAt } from '../../backends/targets/cuda/limits.ts'
import { TARGET_NAMES, TARGETS } from '../../backends/targets/index.ts'
import { makeFolder } from '../../cache/disk-cache.ts'
import { guarded } from '../../io/node-files.ts'
import type { Clear, Launch, Plan } from '../../ir/loops.ts'
import { printExpr } from '../../ir/print-stage2.ts'
import type { Call, CommandSpec } from '../command.ts'
import { EXIT } from '../failure.ts'
import { formsOn, formText, withForm } from '../forms.ts'
import { BIND, CHOOSING_SIZES, DEVICE_FACTS, KERNEL, schedule, TRUST } from '../options.ts'
import { outputAt } from '../outputs.ts'
import { checkSources } from '../paths.ts'
import { checkNames, early, readInputs } from '../run/bind-options.ts'
import { scheduleCall } from '../schedule-call.ts'
import {
  checkDeciding,
  chosen,
  chosenKernel,
  isChosen,
  loadFile,
  reportPassedOver,
  scheduled,
  sizesFor,
  usedFor,
  within,
} from '../scheduled-kernel.ts'
import { misused } from '../usage.ts'

const NAMES = orList(TARGET_NAMES)

export const emit: CommandSpec = {
  name: 'emit',
  args: 'FILE',
  count: [1, 1],
  summary: 'Print the code of a kernel for a target',
  options: [
    { flags: '--target <T>', about: NAMES },
    KERNEL,
    schedule(
      'A schedule: gpu, or gpu(8, 32) with arguments (default: cpu for js and gpu for other targets if legal; auto with --bind, --size or device facts)',
    ),
    { ...BIND, about: 'Data of a buffer or an axis, for automatic selection' },
    CHOOSING_SIZES,
    ...DEVICE_FACTS,
    {
      flags: '--out <PATH>',
      about: 'A file (name with an extension), or a folder for one file per module',
      file: 'write',
    },
    ...TRUST,
  ],
  notes: [
    'Without --schedule, the command prints the variant that the cost model predicts for --size or for the data of --bind.\nspt run may select another variant on other data. For wgsl and cuda, outer loops are bound to threads if the schedule\nbinds no loop.',
  ],
  examples: [
    'spt emit kernel.spt --target cuda --out kernel.cu',
    'spt emit kernel.spt --target wgsl --out shaders/',
    'spt emit kernel.spt --target cuda --schedule auto --size d=128 --capability 9.0 --processors 132',
    "spt emit kernel.spt --target wgsl --schedule auto --size d=64 --size 'nnz(A)=1000000'",
    'spt emit kernel.spt --target cuda --schedule auto --bind A=graph.mtx --size d=128 --capability 9.0 --processors 132',
  ],
  async run(call) {
    const target = call.choice('target', TARGET_NAMES)
    if (target === undefined)
      return misused({ command: 'emit', message: '--target is missing', expected: NAMES })
    const { scheduledAs, parallel, lowering, extension } = TARGETS[target]
    const requested = scheduleCall(call)
    const program = await loadFile(call.args[0]!, call)
    const texts = await within(program, async () => {
      const plain = chosenKernel(program, call)
      const sizes = sizesFor(call, plain, scheduledAs)
      const isGiven =
        requested !== undefined ||
        ['bind', 'size', 'capability', 'processors', 'feature'].some((o) => call.many(o).length > 0)
      const fixed =
        isGiven && isChosen(plain, requested)
          ? null
          : scheduled(plain, requested, scheduledAs === 'cpu' ? 'cpu' : 'gpu')
      const used = usedFor(plain, requested)
      const inputs = {
        ...sizes,
        ...(await boundTo(call, fixed?.kernel ?? plain, sizes, fixed ? null : used)),
      }
      const decided = fixed ?? (await chosen(plain, requested, scheduledAs, inputs))
      const { kernel } = decided
      checkNames(kernel.compilation.kernel, call.pairs('bind', 'PATH').keys(), [], fixed ? undefined : used)
      const all = formsOn(kernel, scheduledAs, inputs)
      if (!isChosen(plain, requested)) checkDeciding(call, plain, all.length > 0)
      reportPassedOver(call, decided)
      return withForm(kernel, all, (k, forms) => {
        const emitted = parallel ? k.parallel() : k.sequential()
        const modules = emitted.emit(target)
        if (sizes.capability !== undefined)
          for (const m of modules) for (const e of m.entries) refuseSharedAt(sizes.capability, e)
        const texts = withPlan(modules, emitted.compilation.planFor(lowering))
        return forms.length > 0 ? withHead(texts, `schedule: ${formText(forms)}`) : texts
      })
    })
    const out = call.one('out')
    if (out === undefined) {
      call.io.out(`${together(texts).trimEnd()}\n`)
      return EXIT.ok
    }
    const files = await filesOf(out, texts, extension)
    // In a folder they have names of their own.
    await checkSources(
      call,
      program,
      files.map(({ path }) => ({ typed: `--out ${out}`, path })),
    )
    for (const { path, text } of files) {
      await call.write(path, text)
      if (outputAt(path) === null) call.io.err(`wrote ${escapedLine(path)}\n`)
    }
    return EXIT.ok
  },
}

/** Tensors bound with `--bind`, if any. `used`: operands of formats, if the schedule is chosen by data. */
async function boundTo(
  call: Call,
  scheduled: Kernel,
  { params = {} }: Pick<RunInputs, 'params'>,
  used: Used | null,
): Promise<Pick<RunInputs, 'tensors'>> {
  const all = call.pairs('bind', 'PATH')
  if (all.size === 0) return {}
  // What formats take decides nothing.
  const files = used ? early(scheduled, all, used) : all
  const { kernel } = scheduled.compilation
  checkNames(kernel, files.keys(), [])
  // What expects times of forms and schedules on data: models, which are files.
  const { readStored } = await import('../../search/calibrate/stored.ts')
  readStored()
  const numbers = new Map(Object.entries(params).map(([name, x]) => [name, Number(x)] as const))
  return { tensors: await readInputs(kernel, files, numbers) }
}

interface Text {
  readonly name: string
  readonly text: string
}

/** Generated modules, preceded by comments with the information needed to launch them. */
function withPlan(modules: readonly ModuleText[], plan: Plan): Text[] {
  let at = 0
  return modules.map((m) => {
    const lines: string[] = []
    // Steps in order: those before a module's last entry belong to its text.
    for (const e of m.entries) {
      for (; plan.steps[at]?.kind === 'clear'; at++)
        lines.push(`// fill ${(plan.steps[at] as Clear).buffer} with zero bytes`)
      lines.push(signature(m, e, plan.steps[at++] as Launch))
    }
    return { name: m.name, text: `${lines.join('\n')}\n${m.text}` }
  })
}

function signature(m: ModuleText, e: Entry, launch: Launch): string {
  const argument = (a: ArgSpec): string =>
    a.kind === 'buffer'
      ? `${a.name}: ${a.dtype}[]${a.access === 'read' ? '' : ' (written)'}`
      : `${a.name}: ${a.dtype}`
  const call = `// ${e.name}(${e.args.map(argument).join(', ')})`
  if (!TARGETS[m.target].grid) return call
  const blocks = launch.grid.map((x) => `(${printExpr(x)})`).join(' * ')
  return `${call}\n//   in ${blocks} blocks of ${e.block.join(' × ')} threads`
}

/** The first with a comment before all. */
const withHead = ([first, ...others]: readonly Text[], head: string): Text[] =>
  first ? [{ ...first, text: `// ${head}\n${first.text}` }, ...others] : []

/** Output paths with their contents; creates the folder. */
async function filesOf(
  out: string,
  texts: readonly Text[],
  ending: string,
): Promise<readonly { readonly path: string; readonly text: string }[]> {
  const isFolder =
    /[/\\]$/.test(out) || extname(out) === '' || (await stat(out).catch(() => null))?.isDirectory()
  if (!isFolder || outputAt(out) !== null) return [{ path: out, text: together(texts) }]
  await guarded(out, 'write', () => makeFolder(out))
  return texts.map(({ name, text }) => ({ path: join(out, `${name}${ending}`), text }))
}

/** One text; several modules each under a line of their own. */
const together = (texts: readonly Text[]): string =>
  texts
    .map(({ name, text }, k) =>
      texts.length > 1 ? `// ==== module ${k + 1} of ${texts.length}: ${name} ====\n${text}` : text,
    )
    .join('\n')
