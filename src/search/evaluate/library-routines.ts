/**
 * Routines of vendor libraries as alternatives to a kernel's schedules: they use its arrays, are verified against its
 * reference, and measured like schedules. Routines are declared in text (`data/libraries/`) and matched to kernels by
 * structure.
 */
import { type KernelMatch, matchKernel } from '../../analysis/kernel-pattern.ts'
import { Built } from '../../api/built/built.ts'
import { CompiledCode } from '../../api/built/code.ts'
import { compileCode } from '../../api/built/compile-code.ts'
import { checkDevice } from '../../api/inputs/argument-checks.ts'
import { expectKernel, type Kernel } from '../../api/kernels/kernel.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { packagedLibraries } from '../../io/package/package.ts'
import { indicesOf, indptrOf, isSparse } from '../../ir/coordinates/axis.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { evaluate } from '../../ir/values/evaluate.ts'
import { type LaunchPlan, launchPlan } from '../../plan/launch-plan.ts'
import type { Bound } from '../../run/bind/index.ts'
import type { Compilation } from '../../run/compile/compile.ts'
import type { Program, Sources } from '../../run/compile/program.ts'
import { elements } from '../../run/execution/buffer-layout.ts'
import type {
  Device,
  DeviceBuffer,
  DeviceKind,
  Library,
  LibraryText,
  Operands,
  Routine,
} from '../../runtime/device.ts'

// A program that is one call of a library routine. Its arrays are those of an equivalent kernel.

/** A library routine that is equivalent to a kernel. */
interface MatchedRoutine {
  readonly library: Library
  readonly routine: Routine
  readonly variant: string
  /** Maps names of the routine's pattern kernel (`pattern`) to the kernel. */
  readonly match: KernelMatch
  readonly pattern: Kernel1
}

/** A program that calls the routine on the arrays of a kernel. */
function libraryProgram(
  device: Device,
  compilation: Compilation,
  of: MatchedRoutine,
  sources: Sources,
): Program {
  const whole = compilation.planOn(device)
  const buffers = whole.buffers.filter((b) => b.role !== 'local' && b.name !== whole.lostWrites?.buffer)
  const plan = launchPlan({
    kernel: compilation.kernel,
    schedule: null,
    stage3: { ...whole, buffers, steps: [], lostWrites: undefined },
    device: device.kind,
    index: 32,
    needs: { features: [], buffersPerLaunch: 0, threadsPerBlock: 0, block: [0, 0, 0], sharedBytes: 0 },
    arenas: [],
    words: [],
    texts: [],
  })
  let live = true
  const program: Program = {
    device,
    plan,
    sources,
    modules: new Map(),
    get live() {
      return live
    },
    instead(bound, memory) {
      const call = of.library.prepare(of.routine, of.variant, operandsOf(of, plan, bound, memory))
      const { name } = call.text
      return {
        commands: [{ kind: 'launch', module: call, entry: name, grid: [1, 1, 1], args: call.buffers }],
        free: () => call.release(),
      }
    },
    release() {
      live = false
    },
  }
  return program
}

function operandsOf(
  { match, pattern }: MatchedRoutine,
  plan: LaunchPlan,
  bound: Bound,
  memory: ReadonlyMap<string, DeviceBuffer>,
): Operands {
  const buffers = [...match.buffers].flatMap(([name, is]): [string, DeviceBuffer][] => {
    const there = memory.get(is)
    return there ? [[name, there]] : []
  })
  const axes = pattern.axes
    .filter((a) => isSparse(a))
    .map((a): [string, NonNullable<ReturnType<Operands['axes']['get']>>] => {
      const is = match.axes.get(a.name)!
      const coordinates = plan.buffers.find((b) => b.name === indicesOf(is))!
      return [
        a.name,
        {
          offsets: memory.get(indptrOf(is))!,
          indices: memory.get(coordinates.name)!,
          entries: elements(coordinates, bound),
        },
      ]
    })
  const numbers = [...match.params].map(([name, e]) => [name, evaluate(e, bound.params)] as const)
  return { buffers: new Map(buffers), numbers: new Map(numbers), axes: new Map(axes) }
}

/** A library routine that computes the kernel's result. */
export interface LibraryRoutine {
  /** `LIBRARY VERSION: ROUTINE, ALGORITHM`, followed by tensors with changed storage. */
  readonly name: string
  readonly library: string
  readonly version: string
  readonly routine: string
  /** Its algorithm. */
  readonly variant: string
  /** Kernel whose arrays it takes, in their storage. */
  readonly kernel: Kernel
  /** The same interface as a schedule's: `bind`, a call, `verify`. */
  compile(): Promise<Built>
}

export interface AbsentLibrary {
  readonly library: string
  readonly reason: string
}

export interface LibraryRoutines {
  readonly routines: readonly LibraryRoutine[]
  /** Those that have a routine for the kernel, and could not be opened. */
  readonly absent: readonly AbsentLibrary[]
}

interface Known {
  readonly libraries: readonly LibraryText[]
  readonly kernels: ReadonlyMap<string, Kernel1>
}

const known = new Map<DeviceKind, Known | null>()

function knownOf(kind: DeviceKind): Known | null {
  if (!known.has(kind)) {
    const texts = packagedLibraries(kind)
    const program = texts && parseProgram(texts.kernels, `data/libraries/${kind}.spt`)
    known.set(
      kind,
      program && {
        libraries: texts.libraries as readonly LibraryText[],
        kernels: new Map(program.kernels.map((name) => [name, program.kernel(name).source])),
      },
    )
  }
  return known.get(kind)!
}

/**
 * The routines of the libraries of a device's vendor that compute what a kernel does, its tensors stored as they are.
 * ```ts
 * const { routines, absent } = libraryRoutines(kernel, device)
 * for (const r of routines) console.log(r.name, await (await r.compile())(inputs))
 * ```
 * On a device without libraries there are none. @throws SptError `api/argument`
 */
export function libraryRoutines(kernel: Kernel, device: Device): LibraryRoutines {
  expectKernel(kernel)
  checkDevice(device)
  const texts = device.library ? knownOf(device.kind) : null
  const routines: LibraryRoutine[] = []
  const absent: AbsentLibrary[] = []
  for (const text of texts?.libraries ?? []) {
    const fitting = text.routines.flatMap((routine) => {
      const pattern = texts!.kernels.get(routine.computes)!
      const match = matchKernel(pattern, kernel.compilation.kernel)
      return match ? [{ routine, pattern, match }] : []
    })
    if (fitting.length === 0) continue
    const library = resultOrError(() => device.library!(text))
    if (library instanceof SptError) {
      absent.push({ library: text.name, reason: library.diagnostics[0]!.message })
      continue
    }
    for (const { routine, pattern, match } of fitting)
      for (const variant of Object.keys(routine.variants))
        routines.push(routineOf(kernel, device, { library, routine, variant, pattern, match }))
  }
  return { routines, absent }
}

function routineOf(kernel: Kernel, device: Device, of: MatchedRoutine): LibraryRoutine {
  const { library, routine, variant } = of
  return {
    name: `${library.name} ${library.version}: ${routine.name}${Object.keys(routine.variants).length > 1 ? `, ${variant}` : ''}`,
    library: library.name,
    version: library.version,
    routine: routine.name,
    variant,
    kernel,
    async compile() {
      const { compilation } = kernel
      const program = libraryProgram(device, compilation, of, kernel.sources)
      const recompile = (other: Device) => compileCode(compilation, other, kernel.sources)
      return Built.fixed(new CompiledCode(compilation, program, recompile))
    },
  }
}
