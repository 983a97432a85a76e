/** Imports of plans: `./x.spt?plan&kernel=product&schedule=gpu(8,32)&target=webgpu`. */
import { basename, relative, resolve } from 'node:path'
import { checkSums, sumsOf } from '../api/built/unordered-sums.ts'
import { argumentsOf, parseScheduleCall } from '../api/kernels/schedule-call.ts'
import type { SptProgram } from '../api/programs/program.ts'
import { failWith } from '../ast/diagnostics/diagnostic.ts'
import { inPackage } from '../ast/imports/resolve-path.ts'
import type { WorkOptions } from '../ast/work.ts'
import { locate } from '../io/package/package.ts'
import { load } from '../node.ts'
import type { Plan, PlanFamily } from '../plan/schema.ts'
import { writePlan } from '../plan/write.ts'
import { planOn } from '../run/compile/compiled-program.ts'
import { describedDevice } from '../run/compile/device-limits.ts'
import { runOn } from '../run/compile/program.ts'

const OPTIONS = ['plan', 'kernel', 'schedule', 'target', 'formats', 'deterministic'] as const
/** Options without a value. */
const FLAGS = ['plan', 'formats', 'deterministic']

/** An import of a plan. */
export interface PlanRequest {
  /** Path of the program, or of a program of the package (`sparsetile/…`). */
  readonly file: string
  readonly kernel: string | undefined
  readonly schedule: string | undefined
  readonly target: 'webgpu' | 'cpu'
  /** The plan can convert tensors: `sparsetile/runtime/formats`. */
  readonly formats: boolean
  /** Without schedules that add floats in no fixed order. */
  readonly deterministic: boolean
}

export const isPlanImport = (specifier: string): boolean => /\.spt\?(?:[^#]*&)?plan(?:[=&]|$)/.test(specifier)

/** The specifier of an import in a file of `folder`, with the path of the program made absolute. */
export function resolvedImport(specifier: string, folder: string): string {
  const [file = '', query] = specifier.split('?')
  return `${inPackage(file) ? locate(file) : resolve(folder, file)}?${query}`
}

/** Reads the query of an import. @throws SptError `import/plan` */
export function planRequest(specifier: string): PlanRequest {
  const [file = '', query = ''] = specifier.split('?')
  const params = new URLSearchParams(query)
  const names = [...params.keys()]
  const unknown = names.find((name) => !(OPTIONS as readonly string[]).includes(name))
  const twice = names.find((name, k) => names.indexOf(name) < k)
  const valued = FLAGS.find((name) => params.get(name))
  const target = params.get('target') ?? 'webgpu'
  const wrong =
    unknown !== undefined
      ? `has an unknown option ${unknown}`
      : twice !== undefined
        ? `has the option ${twice} twice`
        : valued !== undefined
          ? `gives the option ${valued} a value`
          : target !== 'webgpu' && target !== 'cpu'
            ? `has an unknown target ${target}`
            : undefined
  if (wrong !== undefined)
    failWith('import/plan', `the import '${specifier}' ${wrong}`, {
      expected: '?plan&kernel=NAME&schedule=NAME(1,2)&target=webgpu (or cpu), &formats and &deterministic',
    })
  return {
    file,
    kernel: params.get('kernel') ?? undefined,
    schedule: params.get('schedule') ?? undefined,
    target: target as 'webgpu' | 'cpu',
    formats: params.has('formats'),
    deterministic: params.has('deterministic'),
  }
}

/** Features that every device of a kind has. */
const FEATURES = { webgpu: new Set<string>(), cpu: new Set(['f64']) } as const

export interface CompiledPlan {
  readonly plan: Plan | PlanFamily
  readonly program: SptProgram
}

/**
 * Compiles the plan of an import for any device of its kind. The kernel is by default the only one, or the one named like the file; the
 * schedule is `gpu` for WebGPU and `cpu` for the CPU if the kernel has it, otherwise the default. A schedule that selects by data gives a
 * family of plans.
 * @throws SptError
 */
export async function compilePlan(request: PlanRequest, work: WorkOptions = {}): Promise<CompiledPlan> {
  const program = await load(request.file)
  return { program, plan: await planIn(program, request, work) }
}

/** The plan of a request in a loaded program. @throws SptError */
export async function planIn(
  program: SptProgram,
  { file, kernel: name, schedule, target, deterministic }: PlanRequest,
  work: WorkOptions = {},
): Promise<Plan | PlanFamily> {
  const sameName = basename(file, '.spt').replaceAll('-', '_')
  const source = program.kernel(name ?? (program.kernels.includes(sameName) ? sameName : undefined))
  const usual = target === 'cpu' ? 'cpu' : 'gpu'
  const isDeclared = [...source.schedules, ...source.dispatches].includes(usual)
  const text = schedule ?? (isDeclared ? usual : undefined)
  const call = text === undefined ? undefined : parseScheduleCall(text)
  if (call === null)
    failWith('import/plan', `the schedule ${text} of an import is not a schedule`, {
      expected: 'a name, or a name with integers: gpu(8,32)',
    })
  const scheduled = call ? source.schedule(call.name, ...argumentsOf(source, call)) : source
  const device = describedDevice(target, FEATURES[target])
  if (call && source.dispatches.includes(call.name)) {
    const { familyOf } = await import('../search/choice/distil.ts')
    const family = await familyOf(scheduled, device, { deterministic, ...work })
    return 'plans' in family
      ? { ...family, plans: family.plans.map(withRelativePlaces) }
      : withRelativePlaces(family)
  }
  if (deterministic) checkSums(source.name, sumsOf(scheduled, device))
  const { compilation } = runOn<typeof scheduled>(scheduled, target)
  return withRelativePlaces(writePlan(planOn(device, compilation, { sources: program.sources })))
}

function withRelativePlaces(plan: Plan): Plan {
  // Paths relative to the folder of the build: published pages do not tell where they were built.
  const steps = plan.steps.map((s) =>
    'launch' in s && s.place !== undefined
      ? { ...s, place: relative(process.cwd(), s.place).replaceAll('\\', '/') }
      : s,
  )
  return { ...plan, steps }
}
