/** Rebuilds a program and its data in a worker of a study. */
import { realpath } from 'node:fs/promises'
import { resolve, sep } from 'node:path'
import { isDeclared } from '../../api/inputs/bound-inputs.ts'
import type { Kernel, TraceStep } from '../../api/kernels/kernel.ts'
import { readProgram, type SptProgram } from '../../api/programs/program.ts'
import { failWith, type Source } from '../../ast/diagnostics/diagnostic.ts'
import { readTensorFor } from '../../io/index.ts'
import { shippedText } from '../../io/package/program-text.ts'
import { programTrees } from '../../io/package/program-trees.ts'
import type { Dtype } from '../../ir/values/dtype.ts'
import { callerTensor } from '../../run/bind/bind-plan.ts'
import type { Inputs } from '../../run/bind/types.ts'
import type { Tensor } from '../../storage/tensor.ts'
import { dataFingerprint, kernelHash } from '../records/identity.ts'
import type { StoredTrial, Study, TrialFacts, TrialRecord } from '../records/types.ts'
import type { Point } from '../types.ts'

export interface RebuildOptions {
  /** `false` rejects declared instructions and memories, whose source runs on devices unchecked. */
  readonly instructions?: boolean | undefined
  /** The only folder from which data files may be read. */
  readonly dataRoot?: string | undefined
  /** Generates members of families. */
  readonly generate?: ((family: string) => Tensor | Promise<Tensor>) | undefined
}

export interface RebuiltStudy {
  readonly program: SptProgram
  /** Kernel without steps; trials contain theirs (`kernel.replay(trial.trace)`). */
  readonly kernel: Kernel
  readonly inputs: Inputs
}

/**
 * Rebuilds the kernel and the data of a shared study; reads nothing but its data files.
 * @throws SptError `studies/other-kernel`, `studies/other-data` if they differ from those of the study;
 * `studies/outside-root`, `studies/family`, `import/…`, `check/…`, `io/…`
 */
export async function rebuildStudy(shared: SharedStudy, options: RebuildOptions = {}): Promise<RebuiltStudy> {
  const program = await parseSharedProgram(shared.program, options.instructions)
  const kernel = program.kernel(shared.kernel)
  if (kernelHash(kernel) !== shared.study.kernel)
    failWith('studies/other-kernel', `kernel ${kernel.name} is not the kernel of the study`, {
      hint: 'publish the study again, with the compiler of the workers',
    })
  const tensors = Object.fromEntries(
    await Promise.all(
      Object.entries(shared.tensors).map(
        async ([name, input]) =>
          [name, await tensorOf(input, options, isList(kernel, name), typeOf(kernel, name))] as const,
      ),
    ),
  )
  const { params, seed } = shared
  const inputs = { tensors, params, ...(seed !== undefined && { seed }) }
  if (dataFingerprint(kernel, inputs) !== shared.study.fingerprint)
    failWith(
      'studies/other-data',
      `the data of ${Object.keys(tensors).join(', ')} are not the data of the study`,
      {
        expected: 'files with the same contents on every machine',
        hint: 'put the same files where the study looks for them',
      },
    )
  return { program, kernel, inputs }
}

const isList = (kernel: Kernel, name: string): boolean =>
  !isDeclared(kernel.source, name, kernel.allFormatInputs) &&
  kernel.allFormatInputs.get(name)?.kind === 'list'

const typeOf = (kernel: Kernel, name: string): Dtype | undefined =>
  callerTensor(kernel.source, name)?.first.dtype

async function tensorOf(
  input: SharedInput,
  { dataRoot, generate }: RebuildOptions,
  isList: boolean,
  dtype: Dtype | undefined,
): Promise<Tensor> {
  if ('family' in input)
    return generate
      ? generate(input.family)
      : failWith('studies/family', `there is no generator of ${input.family}`, {
          hint: 'give the worker a generator of this family',
        })
  if (dataRoot !== undefined && !(await placeOf(input.file)).startsWith((await placeOf(dataRoot)) + sep))
    failWith('studies/outside-root', `the study reads '${input.file}', which is outside of '${dataRoot}'`, {
      expected: 'files of data in that folder',
      hint: 'put its data there',
    })
  return readTensorFor(input.file, dtype, isList ? { dtype: 'i32' } : {})
}

/** Absolute path with symbolic links resolved. */
const placeOf = (path: string): Promise<string> => realpath(path).catch(() => resolve(path))

// Serialises a program with its imports, and parses it again without reading files.

/** The program's own source, with all sources that it imports. */
export function shareProgram(program: Pick<SptProgram, 'sources'>): SharedProgram {
  const sources = [...program.sources.values()].map(({ name, text }) => ({ name, text }))
  // The first source imports the others.
  return { entry: sources[0]!.name, sources }
}

/** Parses the program again from its sources alone. @throws SptError `studies/incomplete`, `import/…`, `check/…` */
export async function parseSharedProgram(
  { entry, sources }: SharedProgram,
  instructions?: boolean | undefined,
): Promise<SptProgram> {
  const texts = new Map(sources.map((s) => [s.name, s.text]))
  const carried = async (path: string): Promise<string> =>
    texts.get(path) ??
    failWith('studies/incomplete', `the study does not carry the text of '${path}'`, {
      hint: 'publish the study again',
    })
  const host = { files: carried, imports: carried, trees: programTrees(), shipped: shippedText }
  const main = { name: entry, text: await carried(entry) }
  return readProgram(main, host, instructions === undefined ? {} : { instructions })
}

// JSON form of a shared study, complete enough for a worker on another machine to run its trials.

/** Source of a tensor for workers. */
export type SharedInput =
  /** A file, by a path that the workers have as well. */
  | { readonly file: string }
  /** A member of a generated family, with its size and seed: `road:100000:7`. */
  | { readonly family: string }

export interface SharedProgram {
  /** Name of the program's main source. */
  readonly entry: string
  /** The main source and all that it imports. */
  readonly sources: readonly Source[]
}

export interface SharedStudy {
  /** Identity of the study, with the device and compiler of its workers. */
  readonly study: Study
  readonly program: SharedProgram
  readonly kernel: string
  readonly tensors: Readonly<Record<string, SharedInput>>
  readonly params: Readonly<Record<string, number>>
  /** Seed of the random data of unbound inputs. */
  readonly seed?: number | undefined
}

export interface SharedTrial {
  readonly point: Point
  /** Steps of its kernel, so workers need no space. */
  readonly trace: readonly TraceStep[]
  /** Fraction of a full measurement; default 1. Different fractions are different trials. */
  readonly share?: number | undefined
  readonly predicted?: number | undefined
  readonly terms?: Readonly<Record<string, number>> | undefined
}

/** Result of one trial; the worker adds its name and the time. */
export type SharedResult = Pick<TrialRecord, 'outcome' | 'share' | 'predicted' | 'terms'> &
  Omit<TrialFacts, 'worker'>

/** Report that a worker sends back. */
export type SharedReport = SharedResult & Pick<StoredTrial, 'worker' | 'time'>
