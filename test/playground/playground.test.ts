/** The playground in a real browser, driven as a person would: keys, files, menus, links. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Browser, type Page } from '../browser/chromium.ts'
import { TIME_LIMIT } from '../support/time-limit.ts'

interface Builder {
  buildPlayground(out: string, trees: readonly string[]): Promise<unknown>
  servePlayground(out: string, options: { readonly base: string; readonly policy?: string }): Promise<Server>
}
const builder = new URL('../../playground/build.mjs', import.meta.url).href
const { buildPlayground, servePlayground } = (await import(builder)) as Builder

const browser = await Browser.start().catch((e: unknown) => {
  console.log(`skipped: no browser here: ${e instanceof Error ? e.message : String(e)}`)
  return null
})

/** A matrix whose product with ones is 3 and 7. */
const MTX = '%%MatrixMarket matrix coordinate real general\n2 2 3\n1 1 1\n1 2 2\n2 2 7\n'
const BASE = '/deep/path/'

describe.skipIf(!browser)('the playground', () => {
  const out = mkdtempSync(join(tmpdir(), 'playground-'))
  const servers: Server[] = []
  let page: Page
  let url: string

  const serve = async (policy?: string): Promise<string> => {
    const server = await servePlayground(out, { base: BASE, ...(policy === undefined ? {} : { policy }) })
    servers.push(server)
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}${BASE}`
  }

  beforeAll(async () => {
    await buildPlayground(out, ['kernels/formats.spt'])
    url = await serve()
    page = await browser!.page(url)
    await page.send('Emulation.setDeviceMetricsOverride', {
      width: 1280,
      height: 1000,
      deviceScaleFactor: 1,
      mobile: false,
    })
  })
  afterAll(async () => {
    await browser!.close()
    for (const s of servers) await new Promise((resolve) => s.close(resolve))
    rmSync(out, { recursive: true, force: true })
  })

  /** Waits until an expression of the page is true. */
  async function until(expression: string, of = page): Promise<void> {
    const start = performance.now()
    while ((await of.evaluate(expression).catch(() => false)) !== true) {
      if (performance.now() - start > TIME_LIMIT / 2)
        throw new Error(
          `never: ${expression}\nthe page:\n${String(await of.evaluate('document.body.innerText'))}`,
        )
      await new Promise((resolve) => setTimeout(resolve, 30))
    }
  }
  const shows = (text: string, id = 'panels', of = page) =>
    until(`document.getElementById('${id}').innerText.includes(${JSON.stringify(text)})`, of)
  const textIn = (id: string) => page.evaluate(`document.getElementById('${id}').innerText`)
  const program = () =>
    page.evaluate(`[...document.querySelectorAll('#editor .cm-line')].map((l) => l.textContent).join('\\n')`)
  const idle = () => until(`document.getElementById('panels').getAttribute('aria-busy') !== 'true'`)
  const click = (selector: string) =>
    page.evaluate(`document.querySelector(${JSON.stringify(selector)}).click()`)
  const choose = (id: string, value: string) =>
    page.evaluate(`(() => {
      const select = document.getElementById('${id}')
      select.value = ${JSON.stringify(value)}
      if (select.value !== ${JSON.stringify(value)}) throw new Error('no choice ${value} of ${id}')
      select.dispatchEvent(new Event('change', { bubbles: true }))
    })()`)
  const type = (text: string) => page.send('Input.insertText', { text })
  /** Keys by their names in DevTools; `ctrl`: with the control key. */
  async function press(key: string, { ctrl = false, code = 0 } = {}): Promise<void> {
    const event = {
      key,
      code: key.length === 1 ? `Key${key.toUpperCase()}` : key,
      windowsVirtualKeyCode: code,
      modifiers: ctrl ? 2 : 0,
    }
    await page.send('Input.dispatchKeyEvent', { type: 'rawKeyDown', ...event })
    await page.send('Input.dispatchKeyEvent', { type: 'keyUp', ...event })
  }
  /** Puts the cursor behind the first occurrence of a text in the editor. */
  async function cursorBehind(text: string): Promise<void> {
    const at = (await page.evaluate(`(() => {
      const walker = document.createTreeWalker(document.querySelector('#editor .cm-content'), NodeFilter.SHOW_TEXT)
      const line = [...document.querySelectorAll('#editor .cm-line')].find((l) => l.textContent.includes(${JSON.stringify(text)}))
      let left = line.textContent.indexOf(${JSON.stringify(text)}) + ${text.length}
      for (let n = walker.nextNode(); n; n = walker.nextNode()) {
        if (!line.contains(n)) continue
        if (left > n.length) { left -= n.length; continue }
        const range = document.createRange()
        range.setStart(n, left - 1)
        range.setEnd(n, left)
        const { right, top, bottom } = range.getBoundingClientRect()
        return [right, (top + bottom) / 2]
      }
    })()`)) as [number, number]
    const event = { x: at[0], y: at[1], button: 'left', clickCount: 1 }
    await page.send('Input.dispatchMouseEvent', { type: 'mousePressed', ...event })
    await page.send('Input.dispatchMouseEvent', { type: 'mouseReleased', ...event })
  }

  test('the first program is verified without a click', async () => {
    await shows('agree with the reference')
    await shows('No errors', 'status')
  })

  test('a mistake is marked with a replacement, which repairs it; undo brings it back', async () => {
    const before = await program()
    await cursorBehind('A[i, j] * B')
    await type('x')
    await shows('Bx', 'problems')
    expect(
      await page.evaluate(`document.querySelectorAll('#editor .cm-lintRange-error').length`),
    ).toBeGreaterThan(0)
    await click('#problems .fix')
    await until(`document.getElementById('problems').hidden`)
    expect(await program()).toBe(before)
    await press('z', { ctrl: true, code: 90 })
    await shows('Bx', 'problems')
    await press('z', { ctrl: true, code: 90 })
    await until(`document.getElementById('problems').hidden`)
    expect(await program()).toBe(before)
  })

  test('an illegal step of a schedule is marked', async () => {
    await cursorBehind('split i by rows -> (io')
    await type('2')
    await shows('io', 'problems')
    await press('z', { ctrl: true, code: 90 })
    await until(`document.getElementById('problems').hidden`)
  })

  test('a file is dropped, drawn in a format, and run', async () => {
    await click('#view-picture')
    await page.evaluate(`(() => {
      const data = new DataTransfer()
      data.items.add(new File([${JSON.stringify(MTX)}], 'small.mtx'))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
    })()`)
    await shows('2 × 2, 3 nonzeros', 'matrix-info')
    await choose('format-0', 'bsr(4)')
    await shows('A as bsr(4)')
    await click('#run')
    await shows('64 elements agree')
  })

  test('loops after each step', async () => {
    await choose('format-0', '')
    await choose('schedule-0', 'gpu')
    await click('#view-loops')
    await shows('after step 6 of 6')
    await page.evaluate(`document.querySelector('.steps-slider').focus()`)
    for (let k = 0; k < 4; k++) await press('ArrowLeft', { code: 37 })
    await shows('after step 2 of 6: split i by 8')
    expect(await textIn('panels')).toMatch(/for ii in 0\.\.8/)
  })

  test('a link holds everything: text, file, schedule, step', async () => {
    await cursorBehind('// SpMM')
    await type(' (shared)')
    await click('#share')
    const link = (await page.evaluate(`document.getElementById('link').value`)) as string
    await click('#share-dialog button[type=submit]')
    const other = await browser!.page(link)
    await shows('after step 2 of 6: split i by 8', 'panels', other)
    await shows('2 × 2, 3 nonzeros', 'matrix-info', other)
    expect(await other.evaluate(`document.querySelector('#editor .cm-line').textContent`)).toContain(
      '(shared)',
    )
    await other.send('Page.close')
  })

  test.each(['cpu', 'webgpu'])('two schedules side by side on %s', async (device) => {
    await choose('device', device)
    if (device === 'cpu') await click('#compare')
    await click('#view-result')
    await idle()
    await until(`document.querySelectorAll('.verdict.ok').length === 2`)
    expect(await page.evaluate(`document.querySelectorAll('.compare').length`)).toBe(2)
  })

  test('generated code', async () => {
    for (const [view, text] of [
      ['js', 'function'],
      ['wgsl', '@compute'],
      ['cuda', '__global__'],
    ] as const) {
      await click(`#view-${view}`)
      await shows(text)
    }
  })

  test.each([
    ['#1damaged', 'damaged'],
    ['#9x', 'another version'],
  ])('a wrong link %s gets a message', async (hash, message) => {
    const before = await program()
    await page.evaluate(`location.hash = ${JSON.stringify(hash)}`)
    await shows(message, 'notice')
    expect(await program()).toBe(before)
  })

  test('files that hold no matrix get a message', async () => {
    await page.evaluate(`(() => {
      const data = new DataTransfer()
      data.items.add(new File(['no matrix'], 'notes.mtx'))
      document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }))
    })()`)
    await shows('MatrixMarket', 'matrix-info')
  })

  test('without permission to evaluate text, the CPU is not usable, and the page says so', async () => {
    const strict = await browser!.page(await serve("script-src 'self'"))
    await until(`document.getElementById('panels').innerText.includes('forbids')`, strict)
    await shows('No errors', 'status', strict)
    await strict.send('Page.close')
  })

  test('equal sources give equal files', async () => {
    const again = mkdtempSync(join(tmpdir(), 'playground-'))
    await buildPlayground(again, [])
    for (const file of ['page.js', 'compiler.js', 'style.css', 'index.html'])
      expect(readFileSync(join(again, file)).equals(readFileSync(join(out, file)))).toBe(true)
    rmSync(again, { recursive: true, force: true })
  })
})
