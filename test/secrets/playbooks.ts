/*
 * Playbooks that do with secrets what can be done with them. `ORIGIN` is the address of a server that echoes what it gets.
 */

/** Names of the canaries that {@link parentPlaybook} needs: fields of the credentials, and what the token endpoint gives. */
export const CANARY_NAMES = ["token", "deep", "listed", "password", "dsn", "key", "granted", "sensitive"] as const;

const KEYCHAIN = `keychain:
  - { name: mine, kind: credential, credential: vault }
  - name: granted
    kind: oauth2
    scope: shared
    endpoint: ORIGIN/token
    method: POST
    headers: { Content-Type: application/x-www-form-urlencoded }
    data: { grant_type: client_credentials, client_secret: "{{ keychain.mine.token }}" }
`;

const HEAD = "apiVersion: flow/v2\nkind: Playbook\n";

/** Takes secrets through every tool, variables, arcs, loops, a child, results by reference and errors; ends well. */
export function parentPlaybook(origin: string): string {
  return `${HEAD}metadata: { name: parent }
${KEYCHAIN}workflow:
  - step: code
    tool:
      kind: python
      input:
        token: "{{ keychain.mine.token }}"
        all: "{{ keychain.mine }}"
        granted: "{{ keychain.granted.access_token }}"
      code: |
        import sys, base64, json, urllib.parse
        print("stdout", token)
        print("stderr", json.dumps(all), file=sys.stderr)
        for line in all["key"].split("\\n"):
            print(line)
        result = {
            "token": token, "all": all, "granted": granted, "count": 3, "pin": all["pin"],
            "encoded": base64.b64encode(token.encode()).decode(),
            "quoted": urllib.parse.quote(token), "plus": urllib.parse.quote_plus(token), "json": json.dumps({"t": token}),
            "header": "Bearer " + granted,
            "basic": base64.b64encode(("somebody:" + token).encode()).decode(),
        }
    next:
      arcs: [{ step: files, when: "{{ output.count == 3 }}", args: { arg: "{{ code.token }}", granted: "{{ code.granted }}" } }]
    set: { saved: "{{ code.all.deep }}", header: "{{ code.header }}", pin: "{{ code.pin }}" }
  - step: files
    tool:
      kind: shell
      env: { TOKEN: "{{ keychain.mine.token }}", ARG: "{{ arg }}" }
      cmds: ["printf '%s' \\"$ARG\\"", "printf '%s\\\\n' \\"$TOKEN\\" >&2"]
    next: { arcs: [{ step: call, args: { seen: "{{ files.text }}" } }] }
  - step: call
    tool:
      - first:
          kind: http
          auth: login
          method: POST
          url: "${origin}/call?token={{ saved | urlencode }}"
          headers: { X-Token: "{{ header }}", X-Pin: "{{ pin }}" }
          json: { seen: "{{ seen }}", saved: "{{ saved }}", pin: "{{ pin }}" }
      - missing:
          kind: http
          auth: { type: bearer, token: "{{ keychain.granted.access_token }}" }
          url: "${origin}/missing/{{ keychain.mine.token | urlencode }}"
          spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: continue } }] } }
      - fetched: { kind: http, auth: oauth, url: "${origin}/fetched" }
    next: { arcs: [{ step: rows }] }
  - step: rows
    tool:
      kind: sqldb
      auth: database
      command: "select $1::text as token, $2::text as saved, 'x' as plain"
      params: ["{{ keychain.mine.token }}", "{{ saved }}"]
    next: { arcs: [{ step: each }] }
  - step: each
    loop: { in: ["{{ code.token }}", "{{ code.granted }}", "{{ saved }}"], mode: parallel, iterator: one }
    tool:
      - echo: { kind: http, method: POST, url: "${origin}/each", json: { one: "{{ one }}" } }
      - note: { kind: noop, result: { one: "{{ one }}" } }
    next: { arcs: [{ step: big }] }
  - step: big
    loop: { in: 6, mode: parallel }
    tool:
      kind: python
      input: { token: "{{ keychain.mine.token }}", saved: "{{ saved }}" }
      code: |
        result = {"rows": [token + str(i) for i in range(6000)], "saved": saved}
      spec: { result: { preview_max_bytes: 50, select: [{ path: "$.rows[0]", as: first }] } }
    next: { arcs: [{ step: read, args: { ref: "{{ big.results[0]._ref.ref }}" } }] }
  - step: read
    tool:
      - stored: { kind: artifact, action: get, ref: "{{ ref }}" }
      - tell: { kind: http, method: POST, url: "${origin}/artifact", json: { first: "{{ stored.rows[0] }}", saved: "{{ stored.saved }}" } }
    next: { arcs: [{ step: child }] }
  - step: child
    tool:
      kind: playbook
      path: child
      args: { token: "{{ keychain.mine.token }}", saved: "{{ saved }}", granted: "{{ keychain.granted.access_token }}", nested: { deep: ["{{ saved }}"] } }
    next: { arcs: [{ step: hidden }] }
  - step: hidden
    tool:
      kind: python
      spec: { result: { sensitive: true } }
      input: { token: "{{ keychain.mine.token }}", value: "{{ keychain.mine.sensitive }}" }
      code: |
        result = {"value": value, "token": token, "own": "own-" + value[::-1] + "-own", "ok": True, "amount": 12345678}
    next:
      arcs:
        - { step: failed, when: "{{ output.ok and output.amount == 12345678 and output.value | length > 10 }}",
            args: { value: "{{ hidden.value }}", own: "{{ hidden.own }}", amount: "{{ hidden.amount }}" } }
  - step: failed
    tool:
      - tell: { kind: http, method: POST, url: "${origin}/hidden", json: { value: "{{ value }}", own: "{{ own }}", amount: "{{ amount }}", token: "{{ hidden.token }}" } }
      - raise:
          kind: python
          input: { token: "{{ keychain.mine.token }}", value: "{{ value }}" }
          code: |
            raise ValueError("refused " + token + " and " + value)
          spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: continue, set: { why: "{{ outcome.error.message }}" } } }] } }
      - exit:
          kind: shell
          env: { TOKEN: "{{ keychain.mine.token }}" }
          cmd: "printf 'denied for %s' \\"$TOKEN\\" >&2; exit 3"
          spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: continue } }] } }
      - query:
          kind: sqldb
          auth: database
          command: "select cast($1::text as integer)"
          params: ["{{ keychain.mine.token }}"]
          spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' }}", then: { do: continue } }] } }
    next: { arcs: [{ step: end }] }
  - step: end
    tool:
      kind: noop
      result: { saved: "{{ saved }}", first: "{{ big.results[0].first }}", back: "{{ child.back }}", each: "{{ each.results }}", rows: "{{ rows.rows }}" }
`;
}

/** Gets secrets as its workload, uses them, and gives them back. */
export function childPlaybook(origin: string): string {
  return `${HEAD}metadata: { name: child }
workload: { token: null, saved: null, granted: null, nested: {}, url: "${origin}/child?t={{ workload.saved | urlencode }}" }
workflow:
  - step: use
    tool:
      kind: http
      method: POST
      url: "${origin}/child"
      headers: { Authorization: "Bearer {{ workload.granted }}" }
      json: { token: "{{ workload.token }}", saved: "{{ workload.saved }}", nested: "{{ workload.nested }}" }
    next: { arcs: [{ step: end }] }
  - step: end
    tool: { kind: noop, result: { back: "{{ workload.token }}", echoed: "{{ use.data }}" } }
`;
}

/** Fails with secrets in its message, its details and its traceback; its child fails first. */
export function failingPlaybook(origin: string): string {
  return `${HEAD}metadata: { name: failing }
${KEYCHAIN.replace("scope: shared", "scope: local")}workflow:
  - step: child
    tool: { kind: playbook, path: failing_child, args: { token: "{{ keychain.mine.token }}", granted: "{{ keychain.granted.access_token }}" } }
    next: { arcs: [{ step: never, when: "{{ event.name == 'step.done' }}" }] }
  - step: never
    tool: { kind: http, url: "${origin}/never" }
`;
}

/** The child that fails, by an exception that quotes what it was given. */
export const FAILING_CHILD = `${HEAD}metadata: { name: failing_child }
workload: { token: null, granted: null }
workflow:
  - step: raise
    tool:
      kind: python
      input: { token: "{{ workload.token }}", granted: "{{ workload.granted }}" }
      spec: { policy: { rules: [{ when: "{{ outcome.status == 'error' and _attempt < 2 }}", then: { do: retry, attempts: 2, delay: 0 } }] } }
      code: |
        def inner(value):
            raise RuntimeError("cannot use %r or %s" % (value, granted))
        inner({"token": token})
`;

/** The documents with the server's address in them. */
export function documentsFor(origin: string): Readonly<Record<string, string>> {
  const fill = (text: string) => text.replaceAll("ORIGIN", origin);
  return {
    parent: fill(parentPlaybook(origin)),
    child: childPlaybook(origin),
    failing: fill(failingPlaybook(origin)),
    failing_child: FAILING_CHILD,
  };
}
