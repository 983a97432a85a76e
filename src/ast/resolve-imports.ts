/** Text of several files → a program. Reading is the caller's: this runs in a browser as well. */
import { type Diagnostic, type Source, type Span, SptError } from './diagnostic.ts'
import { link } from './link.ts'
import type { File } from './nodes.ts'
import { parse } from './parse.ts'
import type { Program } from './program.ts'
import { resolvePath } from './resolve-path.ts'

/** Gives the text at a path that `resolvePath` made; rejects where there is none. */
export type ReadText = (path: string) => Promise<string>

export interface Loaded {
  readonly files: ReadonlyMap<string, File>
  readonly sources: ReadonlyMap<string, Source>
}

/**
 * The entry file and all that it imports, by normalised path. Throws one `SptError` with the diagnostics of all files that
 * are missing or do not parse; its `sources` are those that could be read.
 */
export async function loadFiles(entry: string, read: ReadText): Promise<Loaded> {
  const files = new Map<string, File>()
  const sources = new Map<string, Source>()
  const problems: Diagnostic[] = []
  const first = resolvePath('', entry)
  const seen = new Set([first])
  let wave: { readonly path: string; readonly span?: Span }[] = [{ path: first }]
  while (wave.length > 0) {
    const texts = await Promise.allSettled(wave.map(async ({ path }) => read(path)))
    const next: typeof wave = []
    wave.forEach(({ path, span }, k) => {
      const text = texts[k]!
      if (text.status === 'rejected') {
        problems.push(...unreadable(path, span, text.reason))
        return
      }
      const source = { name: path, text: text.value }
      sources.set(path, source)
      try {
        const file = parse(source)
        files.set(path, file)
        for (const i of file.imports) {
          const target = resolvePath(path, i.path.value)
          if (seen.has(target)) continue
          seen.add(target)
          next.push({ path: target, span: i.path.span })
        }
      } catch (e) {
        if (!(e instanceof SptError)) throw e
        problems.push(...e.diagnostics)
      }
    })
    wave = next
  }
  if (problems.length > 0) throw withSources(new SptError(problems), sources)
  return { files, sources }
}

function unreadable(path: string, span: Span | undefined, reason: unknown): readonly Diagnostic[] {
  if (reason instanceof SptError) return reason.diagnostics
  const why = reason instanceof Error ? reason.message : String(reason)
  return [
    {
      code: 'import/unreadable',
      message: `cannot read \`${path}\``,
      ...(span && { span }),
      notes: [why],
      ...(span && { hint: 'paths are relative to the importing file' }),
    },
  ]
}

function withSources(error: SptError, sources: ReadonlyMap<string, Source>): SptError {
  error.sources ??= sources
  return error
}

/** Reads a program from its entry file. */
export async function loadProgram(entry: string, read: ReadText): Promise<Program> {
  const { files, sources } = await loadFiles(entry, read)
  return linked(resolvePath('', entry), files, sources)
}

/** A program of one text, which imports nothing. */
export function programOf(source: Source): Program {
  const sources = new Map([[source.name, source]])
  try {
    const file = parse(source)
    const [first] = file.imports
    if (first)
      throw new SptError({
        code: 'import/unreadable',
        message: `\`${first.path.value}\` cannot be imported into a text without a path`,
        span: first.span,
        hint: 'load the program from a file, or with a reader',
      })
    return linked(source.name, new Map([[source.name, file]]), sources)
  } catch (e) {
    throw e instanceof SptError ? withSources(e, sources) : e
  }
}

function linked(entry: string, files: Loaded['files'], sources: Loaded['sources']): Program {
  try {
    return link(entry, files, sources)
  } catch (e) {
    throw e instanceof SptError ? withSources(e, sources) : e
  }
}
