/**
 * Routines of vendor libraries as alternatives to a kernel's schedules: they use its arrays, are verified against its
 * reference, and measured like schedules. Routines are declared in text (`data/libraries/`) and matched to kernels by
 * structure.
 */

import { matchKernel } from '../../analysis/kernel-pattern.ts'
import { CompiledSchedule } from '../../api/compiled/compiled.ts'
import { checkDevice } from '../../api/inputs/argument-checks.ts'
import { expectKernel } from '../../api/kernels/expect-kernel.ts'
import type { Kernel } from '../../api/kernels/kernel.ts'
import { parseProgram } from '../../api/programs/program.ts'
import { resultOrError, SptError } from '../../ast/diagnostics/diagnostic.ts'
import { packagedLibraries } from '../../io/package/package.ts'
import type { Kernel1 } from '../../ir/coordinates/stage1.ts'
import { libraryProgram, type MatchedRoutine } from '../../run/compile/library-program.ts'
import { lanesOf } from '../../run/execution/execute.ts'
import type { Device, DeviceKind } from '../../runtime/device.ts'
import type { LibraryText } from '../../runtime/library-text.ts'

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
  /** The same interface as a schedule's: `prepare`, `run`, `verify`. */
  compile(): Promise<CompiledSchedule>
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
  let found = known.get(kind)
  if (found === undefined) {
    const texts = packagedLibraries(kind)
    const program = texts && parseProgram(texts.kernels, `data/libraries/${kind}.spt`)
    found = program && {
      libraries: texts.libraries as readonly LibraryText[],
      kernels: new Map(program.kernels.map((name) => [name, program.kernel(name).source])),
    }
    known.set(kind, found)
  }
  return found
}

/**
 * The routines of the libraries of a device's vendor that compute what a kernel does, its tensors stored as they are.
 * ```ts
 * const { routines, absent } = libraryRoutines(kernel, device)
 * for (const r of routines) console.log(r.name, await (await r.compile()).run(inputs))
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
      return new CompiledSchedule(
        compilation,
        libraryProgram(device, compilation.planFor(lanesOf(device)), of, kernel.sources),
      )
    },
  }
}
