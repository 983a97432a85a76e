/** The editor of the text, and read-only views of generated texts. */
import { autocompletion } from '@codemirror/autocomplete'
import { defaultKeymap } from '@codemirror/commands'
import {
  HighlightStyle,
  type LanguageSupport,
  type StreamLanguage,
  syntaxHighlighting,
} from '@codemirror/language'
import { type Diagnostic, lintGutter, setDiagnostics } from '@codemirror/lint'
import { EditorState, type Extension, RangeSetBuilder } from '@codemirror/state'
import { Decoration, drawSelection, EditorView, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { basicSetup } from 'codemirror'
import type { Mark } from '../protocol.ts'
import { completions, type KnownNames, spt } from './spt-language.ts'

/** Colours are variables of style.css, so that light and dark need no script. */
const highlighting = syntaxHighlighting(
  HighlightStyle.define([
    { tag: tags.keyword, color: 'var(--keyword)', fontWeight: '600' },
    { tag: tags.controlKeyword, color: 'var(--step)', fontWeight: '600' },
    { tag: tags.typeName, color: 'var(--type)' },
    { tag: tags.comment, color: 'var(--comment)', fontStyle: 'italic' },
    { tag: tags.string, color: 'var(--string)' },
    { tag: tags.number, color: 'var(--number)' },
  ]),
)

const theme = EditorView.theme({
  '&': { color: 'var(--text)', backgroundColor: 'var(--surface)', fontSize: 'var(--code-size)' },
  // style/layout.css marks the focus.
  '&.cm-focused': { outline: 'none' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.5' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--surface)', color: 'var(--quiet)', border: 'none' },
  '.cm-activeLine, .cm-activeLineGutter': { backgroundColor: 'var(--active)' },
  '&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground': {
    backgroundColor: 'var(--selection)',
  },
  '.cm-matchingBracket': { backgroundColor: 'var(--selection)' },
  '.cm-tooltip': {
    backgroundColor: 'var(--raised)',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
  },
  '.cm-tooltip-autocomplete > ul > li[aria-selected]': {
    backgroundColor: 'var(--accent)',
    color: 'var(--on-accent)',
  },
  '.cm-diagnostic': { whiteSpace: 'pre-wrap', padding: '6px 10px', borderLeftWidth: '4px', maxWidth: '60ch' },
  '.cm-diagnosticAction': {
    backgroundColor: 'var(--accent)',
    color: 'var(--on-accent)',
    fontSize: 'inherit',
    borderRadius: '4px',
  },
  '.cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)', borderColor: 'var(--line)' },
  '.cm-foldPlaceholder': {
    backgroundColor: 'var(--active)',
    borderColor: 'var(--line)',
    color: 'var(--quiet)',
  },
  '.cm-textfield, .cm-button': {
    backgroundColor: 'var(--surface)',
    backgroundImage: 'none',
    color: 'var(--text)',
    border: '1px solid var(--line)',
    borderRadius: '6px',
  },
  '.cm-selectionMatch': { backgroundColor: 'var(--active)' },
  '.cm-changed': { backgroundColor: 'var(--changed)' },
})

const common: Extension = [highlighting, theme]

export interface Editor {
  readonly view: EditorView
  show(marks: readonly Mark[]): void
  /** Replaces the whole text, as one step of the history. */
  replace(text: string): void
}

export function createEditor(
  parent: HTMLElement,
  {
    doc,
    changed,
    run,
    known,
  }: { doc: string; changed: () => void; run: () => void; known: () => KnownNames },
): Editor {
  const view = new EditorView({
    parent,
    doc,
    extensions: [
      // Before the default keys, in which Ctrl+Enter inserts a line.
      keymap.of([
        {
          key: 'Mod-Enter',
          run: () => {
            run()
            return true
          },
        },
      ]),
      common,
      basicSetup,
      autocompletion({ override: [completions(known)] }),
      lintGutter(),
      spt,
      EditorView.contentAttributes.of({ 'aria-label': 'Program text (.spt)', spellcheck: 'false' }),
      EditorView.updateListener.of((u) => {
        if (u.docChanged) changed()
      }),
    ],
  })
  return {
    view,
    show(marks) {
      const { length } = view.state.doc
      view.dispatch(setDiagnostics(view.state, marks.filter((m) => m.to <= length).map(diagnosticOf)))
    },
    replace(text) {
      view.dispatch({
        userEvent: 'input.replace',
        changes: { from: 0, to: view.state.doc.length, insert: text },
        selection: { anchor: 0 },
        scrollIntoView: true,
      })
    },
  }
}

/** Replaces a range as a step of the history: with this event, it is not joined with typed characters. */
export const replaceRange = (view: EditorView, from: number, to: number, insert: string): void =>
  view.dispatch({ changes: { from, to, insert }, userEvent: 'input.replace' })

const diagnosticOf = (m: Mark): Diagnostic => ({
  from: m.from,
  to: m.to,
  severity: m.severity,
  source: m.code,
  message: [m.message, m.expected && `expected: ${m.expected}`, m.hint && `hint: ${m.hint}`]
    .filter(Boolean)
    .join('\n'),
  actions: m.fixes.map((fix) => ({
    name: `Replace by ${fix}`,
    apply: (view, from, to) => replaceRange(view, from, to, fix),
  })),
})

/** A read-only text. `changed`: numbers of lines that are marked, from 1. */
export function showText(
  parent: HTMLElement,
  text: string,
  language: StreamLanguage<unknown> | LanguageSupport,
  label: string,
  changed: ReadonlySet<number> = new Set(),
): EditorView {
  const state = EditorState.create({
    doc: text,
    extensions: [
      common,
      lineNumbers(),
      drawSelection(),
      keymap.of(defaultKeymap),
      language,
      EditorState.readOnly.of(true),
      EditorView.contentAttributes.of({ 'aria-label': label, 'aria-readonly': 'true' }),
      EditorView.decorations.of((view) => {
        const marks = new RangeSetBuilder<Decoration>()
        for (const n of [...changed].sort((a, b) => a - b))
          if (n <= view.state.doc.lines)
            marks.add(view.state.doc.line(n).from, view.state.doc.line(n).from, CHANGED)
        return marks.finish()
      }),
    ],
  })
  parent.replaceChildren()
  return new EditorView({ parent, state })
}

const CHANGED = Decoration.line({ class: 'cm-changed' })
