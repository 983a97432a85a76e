/** Programs: elaborated `.spt` sources. */

import { failAs, withSources } from '../../ast/diagnostics/diagnostic.ts'
import { rejectInstructionTexts, type Shipped } from '../../ast/imports/instruction-texts.ts'
import type { Program as Parsed } from '../../ast/imports/linked-program.ts'
import type { Entry, Trees } from '../../ast/imports/resolve-imports.ts'
import type { ReadText } from '../../ast/imports/resolve-path.ts'
import { Work } from '../../ast/work.ts'
import { type Elaborated, elaborate, type Family, instanceName } from '../../elaborate/index.ts'
import type { Buffer1 } from '../../ir/coordinates/stage1.ts'
import type { AnyFormat } from '../../ir/formats/format.ts'
import type { Instr, Memory } from '../../ir/instructions/instr.ts'
import type { StageObserver } from '../../run/compile/compile.ts'
import type { Sources } from '../../run/compile/program.ts'
import { loadProgram, programOf } from '../../schedule/steps/language.ts'
import { expectArgument, nameText, show } from '../inputs/argument-checks.ts'
import { SptFormat } from '../inputs/format-values.ts'
import { Kernel } from '../kernels/kernel.ts'
import { ErrorSources } from './error-sources.ts'
import { chooseFormat } from './format-lookup.ts'
import { isOddPath, isPath, type LoadOptions, namedText } from './load-options.ts'

interface ProgramOptions {
  /** `false`: kernels reject steps with device code that the program does not name itself. */
  readonly instructions?: boolean
  readonly observer?: StageObserver | null
  /** Bounds and order of buffers' elements, by name, that the caller guarantees for all data. */
  readonly known?: ReadonlyMap<string, Pick<Buffer1, 'below' | 'ascending'>>
}

export class SptProgram extends ErrorSources {
  readonly #e: Elaborated
  readonly #made: ProgramOptions
  readonly sources: Sources

  /** @internal */
  constructor(parsed: Parsed, options: ProgramOptions = {}) {
    super()
    this.#made = options
    this.sources = parsed.sources
    this.#e = withSources(this, () => elaborate(parsed))
  }

  get kernels(): readonly string[] {
    return [...this.#e.kernels.keys()]
  }

  get formats(): ReadonlyMap<string, AnyFormat> {
    return this.#e.formats
  }

  /** Instructions that the program declares or imports, for `tensorize` and for tests; examples of parameterised ones. */
  get instructions(): ReadonlyMap<string, Instr> {
    return examples(this.#e.instrs)
  }

  /** Memories that the program declares or imports; examples of parameterised ones. */
  get memories(): ReadonlyMap<string, Memory> {
    return examples(this.#e.memories)
  }

  /** Memories and instructions with their parameters: `families.instructions.get('multiply')?.of(['f16'])`. */
  get families(): {
    readonly memories: ReadonlyMap<string, Family<Memory>>
    readonly instructions: ReadonlyMap<string, Family<Instr>>
  } {
    return { memories: this.#e.memories, instructions: this.#e.instrs }
  }

  /**
   * A format for tensors without kernels: by name with arguments (`format('grid', 2, 5)`), or as a schedule writes it
   * (`format('blocks(16) where (density(16) >= 0.5) + rows')`).
   */
  format(format: string | AnyFormat, ...args: readonly (number | string)[]): SptFormat {
    const chosen = chooseFormat(format, args, this.#e.formats)
    return new SptFormat(chosen.format, chosen.args, this.sources)
  }

  /**
   * A kernel by name; the name is optional if there is only one kernel. A kernel with type parameters has an instance for
   * each type: `kernel('mul<f16>')`, or `kernel('mul', { T: 'f16' })`; without types, each parameter has its first.
   */
  kernel(name?: string, types: Readonly<Record<string, string>> = {}): Kernel {
    const chosen = this.#instanceOf(name, types)
    const k = chosen === undefined ? undefined : this.#e.kernels.get(chosen)
    const { ambiguous } = this.#e
    const meant = name ?? (this.kernels.length === 0 ? [...ambiguous.keys()][0] : undefined)
    const declared = meant === undefined ? undefined : ambiguous.get(meant)
    if (!k && declared)
      return failAs('api/ambiguous-kernel', {
        message: `kernel ${meant} is declared by ${declared.length} of the files that are imported`,
        span: declared[0]!.name.span,
        labels: declared.slice(1).map((d) => ({ span: d.name.span, text: 'and here' })),
        expected: 'a kernel name that only one imported file declares',
        hint: `import the kernel by name, or under another name: import { ${meant} as other } from "…"`,
      })
    if (!k)
      return failAs('api/unknown-kernel', {
        message:
          name === undefined
            ? `the program has ${this.kernels.length} kernels`
            : `the program has no kernel ${nameText(name)}`,
        ...(name !== undefined && { lookup: { name: nameText(name), candidates: this.kernels } }),
        expected: this.kernels.length > 0 ? `one of ${this.kernels.join(', ')}` : 'a kernel',
        ...(name === undefined && { hint: 'pass the name of a kernel' }),
      })
    const { known } = this.#made
    const buffers = k.buffers.map((b) => ({ ...b, ...known?.get(b.name) }))
    return Kernel.of(known ? { ...k, buffers } : k, {
      formats: this.#e.formats,
      memories: this.#e.memories,
      instrs: this.#e.instrs,
      schedules: this.#e.schedules.get(chosen!) ?? new Map(),
      choices: this.#e.choices.get(chosen!) ?? new Map(),
      spaces: this.#e.spaces.get(chosen!) ?? new Map(),
      scheduleWith: (steps) => this.#e.scheduleWith(chosen!, steps),
      sources: this.sources,
      own: (this.#made.instructions ?? true) ? null : this.#e.named,
      observer: this.#made.observer ?? null,
    })
  }

  /** Returns the name of the instance that a name and types stand for; other names as they are. */
  #instanceOf(name: string | undefined, types: Readonly<Record<string, string>>): string | undefined {
    const declared = this.#e.typed
    const only = this.kernels.length === 1 ? this.kernels[0] : undefined
    const [single] = declared.keys()
    const isSingle =
      declared.size === 1 && this.kernels.every((k) => k.startsWith(`${single}<`) || k === single)
    const requested = name ?? only ?? (isSingle ? single : undefined)
    if (typeof requested !== 'string') return requested
    const [base = '', list] = requested.split(/[<>]/).map((s) => s.trim())
    const kernel = declared.get(base)
    const unknown = Object.keys(types).find((t) => !kernel?.params.some((p) => p.name === t))
    if (unknown !== undefined)
      failAs('api/unknown-type-parameter', {
        message: `kernel ${nameText(requested)} has no type parameter ${nameText(unknown)}`,
        lookup: { name: unknown, candidates: kernel?.params.map((p) => p.name) ?? [] },
        ...(kernel ? {} : { hint: 'leave out the types' }),
      })
    if (!kernel) return requested
    const given = list === undefined ? [] : list.split(',').map((t) => t.trim())
    return instanceName(
      base,
      kernel.params.map((p, k) => types[p.name] ?? given[k] ?? p.types[0]!),
    )
  }
}

/** Example instances by their names in the program: `m`, `m(f16, 64)`. */
function examples<T extends { readonly name: string }>(families: ReadonlyMap<string, Family<T>>) {
  const named = [...families].flatMap(([name, f]) =>
    f.examples.map((x) => [name + x.name.slice(f.name.length), x] as const),
  )
  return new Map(named)
}

/** A program from source text without imports of files. @throws SptError with every error found */
export const parseProgram = (text: string, name?: string): SptProgram =>
  new SptProgram(programOf(namedText(text, name)))

/** How a host reads programs, and observes their compilation. */
export interface Host {
  /** Reads the file that `load` names. */
  readonly files: ReadText
  readonly imports: ReadText
  /** Cache of parsed files between processes. */
  readonly trees?: Trees | undefined
  /** Files of the package, whose device code is trusted. */
  readonly shipped?: Shipped | undefined
  readonly observer?: StageObserver | null
}

export async function readProgram(entry: Entry, host: Host, options: LoadOptions = {}): Promise<SptProgram> {
  const { instructions = true } = options
  const work = new Work(options)
  const parsed = await readParsed(entry, host, options, work)
  await work.checkpoint()
  work.begin('check')
  return new SptProgram(parsed, {
    instructions,
    observer: host.observer ?? null,
  })
}

/** Parses a program without checking it, except for device code if `instructions` is false. */
export async function readParsed(
  entry: Entry,
  { files, imports, trees, shipped }: Host,
  { instructions = true }: LoadOptions = {},
  work?: Work,
): Promise<Parsed> {
  const parsed = await loadProgram(entry, textFrom(files), textFrom(imports), trees, work)
  if (!instructions) rejectInstructionTexts(parsed, shipped)
  return parsed
}

const textFrom =
  (read: ReadText): ReadText =>
  async (file) => {
    const text: unknown = await read(file)
    if (typeof text !== 'string') throw new Error(`the reader gave ${show(text)}, no text`)
    return text
  }

/** Implements `load`: reads a path or source text, whose default name is `text.spt`. */
export async function loadWith(textOrPath: string, options: LoadOptions, host: Host): Promise<SptProgram> {
  if (isPath(textOrPath)) return readProgram(textOrPath, host, options)
  const source = namedText(textOrPath, options.name)
  if (isOddPath(source.text))
    expectArgument(
      false,
      'a program',
      textOrPath,
      'its text, or a path that ends in .spt',
      `load('FOLDER/NAME.spt')`,
    )
  return readProgram(source, host, options)
}
