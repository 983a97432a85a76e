/** The state of the page, what the compiler reported about its text, and the link that holds the state. */
import examples from 'playground:examples'
import type { Checked, DeviceChoice, KernelInfo, Problem } from '../protocol.ts'
import { Client } from './client.ts'
import { byId, element } from './dom.ts'
import { MATRICES } from './inputs.ts'
import { decode, encode, type PageState } from './share.ts'

/** Milliseconds from a change to the new link. */
const LINK_MS = 300

export const initial = (): PageState => ({
  text: examples[0]!.text!,
  kernel: '',
  matrix: { name: MATRICES[0].name },
  values: {},
  variants: [{ format: '', schedule: '' }],
  steps: [-1, -1],
  view: 'result',
  device: null,
})

export const client = new Client(new URL('compiler.js', document.baseURI))

class Store {
  state = initial()
  /** Of the latest text without errors outside of schedules. */
  checked: Checked | null = null
  /** The text that `checked` is about. */
  checkedText = ''
  /** The device, unless one is selected: WebGPU if it is a GPU. */
  usual: DeviceChoice = 'cpu'
  #timer = 0
  /** The fragment that this page wrote, to tell it from a link that is opened in the page. */
  #own = ''

  get kernel(): KernelInfo | undefined {
    const { checked, state } = this
    return checked?.kernels?.find((k) => k.name === state.kernel) ?? checked?.kernels?.[0]
  }

  get device(): DeviceChoice {
    return this.state.device ?? this.usual
  }

  get problem(): Problem | null {
    const { kernel, state, checkedText: text } = this
    return kernel ? { text, kernel: kernel.name, matrix: state.matrix, values: state.values } : null
  }

  set(patch: Partial<PageState>): void {
    this.state = { ...this.state, ...patch }
    clearTimeout(this.#timer)
    this.#timer = window.setTimeout(() => this.save(), LINK_MS)
  }

  /** Writes the link. Returns false if the file of the matrix is too large for it. */
  save(): boolean {
    clearTimeout(this.#timer)
    const { hash, complete } = encode(this.state)
    history.replaceState(null, '', `#${hash}`)
    this.#own = location.hash
    return complete
  }

  /** Takes the state of a link's fragment, if it is another than the page's. Returns true if the state has changed. */
  restore(hash: string): boolean {
    if (hash.length < 2 || hash === this.#own) return false
    this.#own = hash
    try {
      const { state, missing } = decode(hash.slice(1))
      this.state = state
      notice(
        missing && `The link does not contain ${missing}, which is too large. Open the file to use it here.`,
      )
      return true
    } catch (e) {
      notice(`The program of the link is not shown: ${messageOf(e)}.`)
      return false
    }
  }
}

export const store = new Store()

export const messageOf = (e: unknown): string => (e instanceof Error ? e.message : String(e))

/** A message above the page; `null` removes it. */
export function notice(text: string | null): void {
  const bar = byId('notice')
  bar.hidden = text === null
  bar.replaceChildren(
    text ?? '',
    element('button', {
      type: 'button',
      className: 'plain',
      textContent: '×',
      aria: { label: 'Close the message' },
      onclick: () => notice(null),
    }),
  )
}
