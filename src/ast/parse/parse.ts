/** Text → AST. Only the `parse` files use Ohm: they hold the parse actions for the grammar. */
import grammar, { type SptGrammar } from '../../../grammar/spt.ohm-bundle.js'
import { type Diagnostic, fail, SptError, useRenderer } from '../diagnostics/diagnostic.ts'
import { render } from '../diagnostics/render.ts'
import { type Source, type Span, sourceOf, spanAt, spanIn } from '../diagnostics/span.ts'
import { explain } from '../diagnostics/syntax-errors.ts'
import { lazy } from '../lazy.ts'
import type * as ast from '../nodes/nodes.ts'
import type { StepSyntax } from '../nodes/step-syntax.ts'
import { Heights } from './checks.ts'
import { Attacher, type Slot, Writable } from './comments.ts'
import { rejectDepth, type ScanResult, scan } from './lexical-scan.ts'
import { expressions, kernels, statements } from './parse-code.ts'
import type { Actions, Match } from './parse-context.ts'
import { cachedMatcher, defaults, get, inContext, line, slotsOf, spanOf } from './parse-context.ts'
import { formats, instructions, monoidLines } from './parse-declarations.ts'
import { choices, schedules, spaces } from './parse-schedules.ts'
import { stepActions, stepRules } from './parse-steps.ts'

useRenderer(render)

const files: Actions = {
  Import: line<ast.Import>('import', '', 'names', '', 'path'),
  ImportName(name, _, as): ast.ImportName {
    const id = get<ast.Ident>(name)
    return { name: id, local: get<ast.Ident | null>(as) ?? id, span: spanOf(this) }
  },
}

/** A grammar with its parse actions, and the steps that begin with a keyword. */
interface Language {
  readonly match: Match
  readonly steps: readonly StepSyntax[]
}

function languageOf(grammar: SptGrammar, steps: readonly StepSyntax[]): Language {
  const semantics = grammar.createSemantics().addOperation<unknown>('ast', {
    ...defaults,
    ...files,
    ...kernels,
    ...statements,
    ...expressions,
    ...formats,
    ...instructions,
    ...schedules,
    ...choices,
    ...spaces,
    ...stepActions(steps),
  })
  return { match: cachedMatcher(grammar, semantics), steps }
}

/** The language of expressions and formats, which contain no steps; created for the first text, because programs may be cached. */
const withoutSteps = lazy(() => languageOf(grammar, []))

/** The method for adding rules to a grammar, which the build adds to Ohm's bundle (`scripts/slim-grammar.mjs`). */
const extensible = grammar as SptGrammar & { with(name: string, rules: object): SptGrammar }

/**
 * Scans a text. An unmatched closing bracket may result from an opening one missing much earlier. If the text before it
 * does not parse either, the error is reported there instead.
 */
function scanSource(source: Source, rule: string, language: Language): ScanResult {
  try {
    return scan(source)
  } catch (e) {
    const [d] = e instanceof SptError ? e.diagnostics : []
    if (d?.code === 'parse/unopened' && d.span) rejectEarlierError(source, rule, language, d.span)
    throw e
  }
}

function rejectEarlierError(
  { name, text: fullText }: Source,
  rule: string,
  language: Language,
  bracket: Span,
): void {
  const prefix = { name, text: fullText.slice(0, bracket.start) }
  let condensed: ScanResult['condensed']
  try {
    ;({ condensed } = scan(prefix))
  } catch {
    // Brackets before it do not match either: the original error is reported.
    return
  }
  const { text, at } = condensed
  const match = language.match(text, rule)
  if (!('place' in match)) return
  const place = at(match.place)
  if (place >= prefix.text.trimEnd().length) return
  const label = { span: bracket, text: 'this then closes nothing' }
  fail({ ...explain(prefix, place, match.failures, language.steps), labels: [label] })
}

/**
 * Matches a text against a rule, passes the actions' results to `use`, and attaches comments. A file is matched and
 * read piece by piece, so that Ohm's tables for each piece can be freed.
 */
function parseText<T>(
  input: Source,
  rule: string,
  language: Language,
  use: (trees: readonly unknown[], attach: Attacher) => T,
  location?: Span,
): T {
  const base = location?.start ?? 0
  // Some editors begin every file with a byte order mark.
  const source = { ...input, text: input.text.replace(/^\uFEFF/, ' ') }
  const { comments, condensed } = withLocation(location, () => scanSource(source, rule, language))
  const { text, at } = condensed
  const shared = {
    source: location ? (sourceOf(location) ?? { name: location.source }) : source,
    text: source.text,
    slots: new Map<object, Slot>(),
    heights: new Heights(),
  }
  const inPiece = <U>(start: number, run: () => U): U =>
    inContext({ ...shared, at: (place) => base + at(start + place) }, run)
  const read = (piece: string, start: number): unknown => {
    const match = language.match(piece, rule)
    if (!('place' in match)) return inPiece(start, () => get(match))
    const place = at(start + match.place)
    return withLocation(location, () => fail(explain(source, place, match.failures, language.steps)))
  }
  const readPieces = (): readonly unknown[] => {
    let end = 0
    return condensed.pieces.map((piece) => {
      end += piece.length
      return read(piece, end - piece.length)
    })
  }
  // Errors of the grammar are reported before those of actions, over the whole text.
  const readAll = (): readonly unknown[] => {
    if (rule !== 'File' || condensed.pieces.length === 1) return [read(text, 0)]
    try {
      return readPieces()
    } catch {
      return [read(text, 0)]
    }
  }
  try {
    const trees = readAll()
    const result = inPiece(0, () => use(trees, new Attacher(source.text, comments)))
    for (const [node, slot] of shared.slots) setTrivia(node, slot.trivia.value)
    return result
  } catch (e) {
    if (e instanceof SptError || !(e instanceof RangeError)) throw e
    return rejectDepth({ source: source.name, start: 0, end: 0 })
  }
}

/**
 * Parses texts that contain steps. Both methods throw only `SptError` with one diagnostic, whose span lies in `source`.
 */
export interface Parser {
  /** Parses a file. */
  parse(source: Source): ast.File
  /** Parses the steps of a schedule without its braces, as `printStep` writes them: one or several. */
  parseSteps(source: Source): readonly ast.Step[]
}

export function parserFor(steps: readonly StepSyntax[]): Parser {
  const language = lazy(() => languageOf(extensible.with('SptWithSteps', stepRules(steps)), steps))
  return {
    parse: (source) =>
      parseText(source, 'File', language(), (trees, attach) => fileOf(source, trees, attach)),
    parseSteps: (source) => parseText(source, 'Steps', language(), ([tree]) => tree as readonly ast.Step[]),
  }
}

function fileOf(source: Source, trees: readonly unknown[], attach: Attacher): ast.File {
  const nodes = (trees as readonly (readonly (ast.Import | ast.File['decls'][number])[])[]).flat()
  const imports = nodes.filter((n) => n.kind === 'import')
  const decls = nodes.filter((n) => n.kind !== 'import')
  const trivia = new Writable()
  attach.file(slotsOf(nodes), trivia)
  const end = trivia.value
  const span = spanIn(source, 0, source.text.length)
  return { kind: 'file', imports, decls, span, ...(end && { trivia: end }) }
}

/** Parses a file whose schedules have no steps with words, such as a printed kernel. Throws like `parse`. */
export function parseWithoutSteps(source: Source): ast.File {
  return parseText(source, 'File', withoutSteps(), (trees, attach) => fileOf(source, trees, attach))
}

/** Parses the formats after `as`, on their own. Throws like `parse`. */
export function parseFormatParts(source: Source): readonly ast.AsPart[] {
  return parseText(source, 'AsParts', withoutSteps(), ([tree]) => tree as readonly ast.AsPart[])
}

/** Parses an expression on its own, or the one at `location` in its file. Throws like `parse`. */
export function parseExpression(source: Source, location?: Span): ast.Expr {
  return parseText(source, 'Expr', withoutSteps(), ([tree]) => tree as ast.Expr, location)
}

/** Runs `parse`, and moves the spans of its errors to `location` in the file. */
function withLocation<T>(location: Span | undefined, parse: () => T): T {
  try {
    return parse()
  } catch (e) {
    throw location && e instanceof SptError
      ? new SptError(e.diagnostics.map((d) => moveDiagnostic(d, location)))
      : e
  }
}

function moveDiagnostic(d: Diagnostic, location: Span): Diagnostic {
  const { start } = location
  return d.span ? { ...d, span: spanAt(location, start + d.span.start, start + d.span.end) } : d
}

/** The parser may still modify nodes, which have not been returned yet. */
function setTrivia(node: object, trivia: ast.Trivia | undefined): void {
  if (trivia) (node as { trivia?: ast.Trivia }).trivia = trivia
  const lines = monoidLines.get(node as ast.Monoid)
  const [identity, combine] = lines?.map((w) => w.value) ?? []
  if (identity || combine)
    (node as { lines?: ast.Monoid['lines'] }).lines = {
      ...(identity && { identity }),
      ...(combine && { combine }),
    }
}
