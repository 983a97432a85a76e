/** Loading of a program from several files. The caller provides the reader, so this also runs in a browser. */

import type { Diagnostic, Source, Span } from '../diagnostics/diagnostic.ts'
import { failAt, SptError, withSources } from '../diagnostics/diagnostic.ts'
import { nameText } from '../diagnostics/expect-argument.ts'
import { TextCache } from '../latest.ts'
import type { File, Path } from '../nodes/nodes.ts'
import type { Parser } from '../parse/parse.ts'
import { Work } from '../work.ts'
import { link } from './link.ts'
import type { Program } from './linked-program.ts'
import { inPackage, PACKAGE, type ReadText, refuseImport, resolvePath } from './resolve-path.ts'

/** A cache of parse trees across processes; missing trees are parsed. */
export interface Trees {
  load(source: Source): Promise<File | undefined>
  store(source: Source, file: File): Promise<void>
}

export interface Loaded {
  readonly files: ReadonlyMap<string, File>
  readonly sources: ReadonlyMap<string, Source>
}

/** A file's path, or a text whose name its imports are relative to. */
export type Entry = string | Source

/** Most files of one program: a reader could generate imports endlessly. */
const MAX_FILES = 1000

/** Limit in characters of texts with cached trees: a tree takes about 20 times as many bytes. */
const MAX_CACHED_LENGTH = 2 ** 20

const keyOf = (source: Source): string => `${source.name}\n${source.text}`

/** Parses each text once: programs import the same files repeatedly, and trees are immutable. */
class TreeCache {
  readonly #parse: Parser['parse']
  readonly #trees = new TextCache<File>(MAX_CACHED_LENGTH)

  constructor({ parse }: Parser) {
    this.#parse = parse
  }

  #keep(source: Source, file: File): File {
    this.#trees.put(keyOf(source), file)
    return file
  }

  parse(source: Source): File {
    return this.#trees.get(keyOf(source)) ?? this.#keep(source, this.#parse(source))
  }

  /** `parse`, for a text whose tree another process may have stored in `store`. */
  async parseOrLoad(source: Source, store: Trees | undefined): Promise<File> {
    if (!store || this.#trees.get(keyOf(source))) return this.parse(source)
    const stored = await store.load(source)
    if (stored) return this.#keep(source, stored)
    const file = this.parse(source)
    await store.store(source, file)
    return file
  }
}

/** Loads programs with the steps of a parser. */
export interface Loader {
  /**
   * Loads the entry and all its imports with `read`, by normalised path; parse trees may come from `store`. @throws
   * one SptError with the diagnostics of all files that are missing or do not parse, or `import/too-many-files`; its
   * `sources` are the files that could be read
   */
  loadFiles(entry: Entry, read: ReadText, readImport?: ReadText, store?: Trees, work?: Work): Promise<Loaded>
  /** Loads and links a program from its entry. */
  loadProgram(
    entry: Entry,
    read: ReadText,
    readImport?: ReadText,
    store?: Trees,
    work?: Work,
  ): Promise<Program>
  /** A program of a single text without imports. */
  programOf(source: Source): Program
}

export function loaderOf(parser: Parser): Loader {
  const memory = new TreeCache(parser)
  const loadFiles: Loader['loadFiles'] = (
    entry,
    read,
    readImport = read,
    store = undefined,
    work = new Work(),
  ) => filesFrom(entry, read, readImport, store, memory, work)
  return {
    loadFiles,
    loadProgram: async (entry, ...from) => {
      const { files, sources } = await loadFiles(entry, ...from)
      return linkProgram(pathOf(entry), files, sources)
    },
    programOf: (source) => singleTextProgram(source, memory),
  }
}

const pathOf = (entry: Entry): string => resolvePath('', typeof entry === 'string' ? entry : entry.name)

async function filesFrom(
  entry: Entry,
  read: ReadText,
  readImport: ReadText,
  store: Trees | undefined,
  memory: TreeCache,
  work: Work,
): Promise<Loaded> {
  const files = new Map<string, File>()
  const sources = new Map<string, Source>()
  const problems: Diagnostic[] = []
  const first = pathOf(entry)
  const seen = new Set([first])
  let pending: PendingFile[] = [{ path: first }]
  while (pending.length > 0) {
    const reading = Promise.allSettled(
      pending.map(async ({ path }) => {
        if (path !== first) return readImport(path)
        return typeof entry === 'string' ? read(path) : entry.text
      }),
    )
    const texts = await work.wait(reading)
    const next: typeof pending = []
    for (const [k, reference] of pending.entries()) {
      const { path } = reference
      const text = texts[k]!
      if (text.status === 'rejected') {
        problems.push(...unreadable(reference, text.reason))
        continue
      }
      await work.checkpoint()
      work.begin('parse', path)
      const source = { name: path, text: text.value }
      sources.set(path, source)
      let file: File
      try {
        const isText = path === first && typeof entry !== 'string'
        file = await memory.parseOrLoad(source, isText ? undefined : store)
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        problems.push(...e.diagnostics)
        continue
      }
      files.set(path, file)
      const tables = tablesIn(file)
      for (const named of pathsIn(file)) {
        const target = resolvePath(path, named.value)
        if (seen.has(target)) continue
        if (seen.size === MAX_FILES) withSources({ sources }, () => rejectFileCount(named))
        seen.add(target)
        next.push({ path: target, span: named.span, isTable: tables.includes(named) })
      }
    }
    pending = next
  }
  return withSources({ sources }, () => {
    if (problems.length > 0) throw new SptError(problems)
    return { files, sources }
  })
}

interface PendingFile {
  readonly path: string
  /** The path in the importing file; undefined for the entry. */
  readonly span?: Span
  readonly isTable?: boolean
}

/** The other files that a file names: imports and dispatch tables. */
const pathsIn = (file: File): readonly Path[] => [...file.imports.map((i) => i.path), ...tablesIn(file)]

const tablesIn = ({ decls }: File): readonly Path[] =>
  decls.flatMap((d) => (d.kind === 'choice' && d.by === 'rules' && d.table ? [d.table] : []))

const rejectFileCount = ({ value, span }: Path): never =>
  failAt('import/too-many-files', span, {
    message: `\`${value}\` would be file ${MAX_FILES + 1} of the program`,
    expected: `at most ${MAX_FILES} files`,
    hint: 'the `read` function may return a different text for each path; check for an endless chain of imports',
  })

/** Diagnostics for an unreadable path, located at the import that names it. */
function unreadable(file: PendingFile, reason: unknown): readonly Diagnostic[] {
  const { path, span } = file
  const diagnostics: readonly Diagnostic[] =
    reason instanceof SptError
      ? reason.diagnostics
      : [
          {
            code: 'import/unreadable',
            message: `cannot read \`${path}\`: ${reasonOf(reason)}`,
            hint: span
              ? hintFor(path)
              : 'in a browser, paths are relative to the page; a `read` function defines how paths resolve',
          },
        ]
  return span
    ? diagnostics.map((d) => ({ ...d, hint: atImport(d, file), span: d.span ?? span }))
    : diagnostics
}

const reasonOf = (reason: unknown): string =>
  (reason instanceof Error ? reason.message || reason.name : nameText(reason)).trim().split('\n')[0]!

/** The reader's hint, extended by the folder that the path is relative to; for a table, the command that writes it. */
function atImport({ code, hint }: Diagnostic, { path, isTable }: PendingFile): string {
  if (isTable && code === 'io/not-found' && !inPackage(path))
    return `remove this dispatch until \`spt tune … --generalise ${path}\` has written the table; ${hintFor(path)}`
  if (hint === undefined) return hintFor(path)
  return code === 'io/not-found' ? `${hint}; ${hintFor(path)}` : hint
}

const hintFor = (path: string): string =>
  inPackage(path)
    ? `a path that begins with ${PACKAGE} is in the package; a folder of that name is ./${PACKAGE}`
    : 'paths are relative to the importing file'

function singleTextProgram(source: Source, memory: TreeCache): Program {
  const sources = new Map([[source.name, source]])
  return withSources({ sources }, () => {
    const file = memory.parse(source)
    const [first] = pathsIn(file)
    if (first) refuseImport(first.value, first.span)
    return linkProgram(source.name, new Map([[source.name, file]]), sources)
  })
}

const linkProgram = (entry: string, files: Loaded['files'], sources: Loaded['sources']): Program =>
  withSources({ sources }, () => link(entry, files, sources))
