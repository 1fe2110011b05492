// The authorization server: the certified oidc-provider, with pages for login and consent.
//
// Any client may register; PKCE is required; tokens are for one resource. The provider records its events, so that a
// leg can check them.

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";

import Provider, { errors } from "oidc-provider";

import { pages } from "./pages.mjs";

/// The users and their passwords.
export const PEOPLE = { ann: "correct horse", ben: "battery staple" };

/// The client with which our server introspects tokens.
export const ASKING = { client_id: "the-resource-server", client_secret: "a secret of the resource server" };

/// The client of our proxy. It is preregistered, as with providers that do not support MCP.
export const PROXY = { client_id: "the-proxy", client_secret: "a secret of the proxy", client_name: "The proxy" };

/// Starts the provider. The redirect URI of the proxy is at the given address.
export async function startProvider(callback) {
  const listener = createServer();
  await new Promise((listening) => listener.listen(0, "127.0.0.1", listening));
  const issuer = `http://127.0.0.1:${listener.address().port}`;
  const resources = new Map();
  const provider = new Provider(issuer, configuration(resources, callback));
  const seen = noted(provider);
  const [own, theirs] = [pages(provider), provider.callback()];
  listener.on("request", (request, response) =>
    request.url.startsWith("/interaction/") ? own(request, response) : theirs(request, response),
  );
  return {
    issuer,
    /// Records the events of clients with this name, and of those without one.
    watch(name) {
      const from = seen.length;
      const it = { issuer, seen: () => seen.slice(from).filter((it) => [name, undefined].includes(it.client)) };
      return { ...it, lastToken: () => it.seen().findLast((it) => it.event === "grant").token };
    },
    /// Issues tokens for a server, with this lifetime and of this kind.
    protect: (url, { seconds, format, alg }) => resources.set(url, { seconds, format, alg }),
    stop: () => listener.close() && listener.closeAllConnections(),
  };
}

function configuration(resources, callback) {
  return {
    clients: [
      { ...ASKING, redirect_uris: [], response_types: [], grant_types: [] },
      { ...PROXY, redirect_uris: [callback], grant_types: ["authorization_code", "refresh_token"] },
    ],
    cookies: { keys: ["signs the cookies of this run"] },
    jwks: { keys: [key("RS256", "rsa", { modulusLength: 2048 }), key("ES256", "ec", { namedCurve: "P-256" }), key("EdDSA", "ed25519")] },
    findAccount: (_, sub) => (sub in PEOPLE ? { accountId: sub, claims: () => ({ sub }) } : undefined),
    interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
    // Clients register with their first scope and may request others later, which belong to resources only.
    scopes: ["openid", "offline_access", "mcp"],
    ttl: {
      AccessToken: (_, token) => token.resourceServer?.accessTokenTTL ?? 600,
      IdToken: 600,
      RefreshToken: 3600,
      Grant: 3600,
      Session: 3600,
      Interaction: 600,
    },
    pkce: { required: () => true },
    routes: { revocation: "/revoke", introspection: "/introspect", registration: "/register" },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true, allowedPolicy: (_, client, token) => token.clientId === client.clientId },
      introspection: { enabled: true, allowedPolicy: (_, client) => client.clientId === ASKING.client_id },
      dPoP: { enabled: true, nonceSecret: Buffer.alloc(32, 7), requireNonce: () => true },
      resourceIndicators: {
        enabled: true,
        getResourceServerInfo(_, resource) {
          const known = resources.get(resource);
          if (!known) throw new errors.InvalidTarget();
          const { seconds, format, alg } = known;
          const jwt = format === "jwt" ? { sign: { alg } } : undefined;
          return { scope: "mcp write", audience: resource, accessTokenTTL: seconds, accessTokenFormat: format, jwt };
        },
      },
    },
  };
}

function key(alg, type, options) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), alg, use: "sig", kid: alg };
}

/// The events in order: registrations, logins, grants, revocations and errors.
function noted(provider) {
  const seen = [];
  const client = (ctx) => ctx.oidc?.client?.clientName;
  provider.on("registration_create.success", (_, made) => seen.push({ event: "registration", client: made.clientName }));
  provider.on("authorization.success", (ctx) => seen.push({ event: "authorization", client: client(ctx) }));
  provider.on("grant.success", (ctx) => {
    const { grant_type: type, resource } = ctx.oidc.params;
    const { token_type: kind, access_token: token } = ctx.body;
    const given = { event: "grant", client: client(ctx), type, resource, kind };
    // For the legs, not for a log.
    seen.push(Object.defineProperty(given, "token", { value: token, enumerable: false }));
  });
  provider.on("grant.revoked", (ctx) => seen.push({ event: "revoked", client: client(ctx) }));
  for (const event of ["authorization", "grant", "registration_create", "revocation", "introspection", "server"]) {
    provider.on(`${event}.error`, (ctx, error) =>
      seen.push({ event: "error", client: client(ctx), of: event, error: error.error, why: error.error_description ?? error.message }),
    );
  }
  provider.on("server_error", (_, error) => seen.push({ event: "error", of: "server", error: "server_error", why: error.stack }));
  return seen;
}
