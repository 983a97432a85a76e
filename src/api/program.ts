/** Programs: text or files, elaborated. */
import { fail, type Source, withSources } from '../ast/diagnostic.ts'
import { refuseInstructionTexts, type Shipped } from '../ast/instruction-texts.ts'
import type { Program as Parsed } from '../ast/linked-program.ts'
import type { Entry, ReadText, Trees } from '../ast/resolve-imports.ts'
import { type Elaborated, elaborate, type Family } from '../elaborate/index.ts'
import type { AnyFormat } from '../ir/format.ts'
import type { Instr, Memory } from '../ir/instr.ts'
import type { Buffer1 } from '../ir/stage1.ts'
import type { StageObserver } from '../run/compile.ts'
import { loadProgram, programOf } from '../schedule/language.ts'
import { expectArgument, expectFlag, expectOptions, isRecord, nameText, show } from './argument-checks.ts'
import { ErrorSources } from './error-sources.ts'
import { chooseFormat } from './format-lookup.ts'
import { SptFormat } from './format-values.ts'
import { Kernel } from './kernel.ts'

interface ProgramOptions {
  /** `false`: its kernels take no steps with texts for targets that it does not name itself. */
  readonly instructions?: boolean
  /** Sees its kernels after every step and pass. */
  readonly observer?: StageObserver | null
  /** Of buffers of its kernels: what is known of elements, in all data that whoever says so brings. */
  readonly known?: ReadonlyMap<string, Pick<Buffer1, 'below' | 'ascending'>>
}

export class SptProgram extends ErrorSources {
  readonly #e: Elaborated
  readonly #made: ProgramOptions
  /** Sources by name, for rendering diagnostics. */
  readonly sources: Parsed['sources']

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

  /** What the program declares or imports, for `tensorize` and for tests of it; with parameters, the examples. */
  get instructions(): ReadonlyMap<string, Instr> {
    return examples(this.#e.instrs)
  }

  /** The memories that it declares or imports; with parameters, the examples. */
  get memories(): ReadonlyMap<string, Memory> {
    return examples(this.#e.memories)
  }

  /** The same by name, with their parameters: `families.instructions.get('multiply')?.of(['f16'])`. */
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

  /** A kernel by name; the only one where there is one. */
  kernel(name?: string): Kernel {
    const chosen = name ?? (this.kernels.length === 1 ? this.kernels[0] : undefined)
    const k = chosen === undefined ? undefined : this.#e.kernels.get(chosen)
    const { ambiguous } = this.#e
    const meant = name ?? (this.kernels.length === 0 ? [...ambiguous.keys()][0] : undefined)
    const declared = meant === undefined ? undefined : ambiguous.get(meant)
    if (!k && declared)
      return fail({
        code: 'api/ambiguous-kernel',
        message: `kernel ${meant} is declared by ${declared.length} of the files that are imported`,
        span: declared[0]!.name.span,
        labels: declared.slice(1).map((d) => ({ span: d.name.span, text: 'and here' })),
        expected: 'a kernel name that only one imported file declares',
        hint: `import the kernel by name, or rename it: import { ${meant} as other } from "…"`,
      })
    if (!k)
      return fail({
        code: 'api/unknown-kernel',
        message:
          name === undefined
            ? `the program has ${this.kernels.length} kernels`
            : `the program has no kernel ${nameText(name)}`,
        ...(name === undefined ? {} : { lookup: { name: nameText(name), candidates: this.kernels } }),
        expected: this.kernels.length > 0 ? `one of ${this.kernels.join(', ')}` : 'a kernel',
        ...(name === undefined ? { hint: 'pass the name of a kernel' } : {}),
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
      sources: this.sources,
      own: (this.#made.instructions ?? true) ? null : this.#e.named,
      observer: this.#made.observer ?? null,
    })
  }
}

/** Instances under the names that the program has for them: `m`, `m(f16, 64)`. */
function examples<T extends { readonly name: string }>(families: ReadonlyMap<string, Family<T>>) {
  const named = [...families].flatMap(([name, f]) =>
    f.examples.map((x) => [name + x.name.slice(f.name.length), x] as const),
  )
  return new Map(named)
}

/** A program from its text alone. @throws SptError with every error found */
export const parseProgram = (text: string, name?: string): SptProgram =>
  new SptProgram(programOf(namedText(text, name)))

export interface LoadOptions {
  /** Gives the text of an imported file; default: the file system, `fetch` in browsers. */
  readonly read?: ReadText | undefined
  /** What errors call a text, and what its imports are relative to. */
  readonly name?: string | undefined
  /** The folder that imports may come from, besides the package; default: any. */
  readonly root?: string | undefined
  /** `false`: texts of instructions and memories, which run on devices as they are written, are the package's or refused. */
  readonly instructions?: boolean | undefined
}

/** How a host reads programs, and who sees what becomes of them. */
export interface Host {
  /** The file that `load` names. */
  readonly files: ReadText
  readonly imports: ReadText
  /** Where trees of files are kept between processes. */
  readonly trees?: Trees | undefined
  /** Files of the package that it has: their texts for targets are vouched for. */
  readonly shipped?: Shipped | undefined
  readonly observer?: StageObserver | null
}

/** A program from a file, or a text with a name, and what it imports, through readers. */
export async function readProgram(entry: Entry, host: Host, options: LoadOptions = {}): Promise<SptProgram> {
  const { instructions = true } = options
  return new SptProgram(await readParsed(entry, host, options), {
    instructions,
    observer: host.observer ?? null,
  })
}

/** The same before anything of it is checked but that it may have instructions. */
export async function readParsed(
  entry: Entry,
  { files, imports, trees, shipped }: Host,
  { instructions = true }: LoadOptions = {},
): Promise<Parsed> {
  const parsed = await loadProgram(entry, textFrom(files), textFrom(imports), trees)
  if (!instructions) refuseInstructionTexts(parsed, shipped)
  return parsed
}

const textFrom =
  (read: ReadText): ReadText =>
  async (file) => {
    const text: unknown = await read(file)
    if (typeof text !== 'string') throw new Error(`the reader gave ${show(text)}, no text`)
    return text
  }

/** `more`: options that this host has besides. @throws SptError `api/argument`, `api/unknown-option` */
export function checkLoadOptions<T extends LoadOptions>(
  options: T,
  ...more: readonly (keyof T & string)[]
): void {
  expectOptions('load', options, ['read', 'name', 'root', 'instructions', ...more])
  const { read, name, root, instructions } = options
  const isText = (x: unknown) => x === undefined || typeof x === 'string'
  expectArgument(read === undefined || typeof read === 'function', 'read', read, 'a function')
  expectArgument(isText(name), 'the name of a text', name, 'a string')
  expectArgument(isText(root) && root !== '', 'the root of imports', root, "a folder: './kernels'")
  expectFlag('instructions', instructions)
}

/** `load` of each host: a path, or a text, which without a `name` is called `text.spt`. */
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

/** A declaration has blanks in it; a path in place of a text is not explained by what the parser expects. */
export const isOddPath = (s: string): boolean =>
  typeof s === 'string' && /^[\w.~@:/\\-]+$/.test(s.trim()) && !s.startsWith('//')

/** A `URL` is a path as well; only this much is asked of it, so that declarations need no types of a host. */
export type TextOrUrl = string | { readonly href: string }

export const textOf = (given: TextOrUrl): string =>
  isRecord(given) && typeof given.href === 'string' ? given.href : (given as string)

function namedText(text: string, name = 'text.spt'): Source {
  expectArgument(typeof text === 'string', 'a program', text, 'its text, or the path of a .spt file')
  return { name, text }
}

/** A single line that ends in `.spt` is a path; anything else is a program. */
export const isPath = (s: string): boolean =>
  typeof s === 'string' && !s.includes('\n') && /\.spt$/.test(s.trim())
