# frozen_string_literal: true

require "base64"
require "json"
require "openssl"

# Verifies passes of Anteroom, with Ruby 3.1 and nothing else. With a good pass a request may go to the application, in every other case
# it goes to Anteroom.
#
# Run as a program, it reads ticket/pass/testdata/vectors.json and says which vectors it reads wrongly.
module AnteroomPass
  module_function

  # The encoded header of a key's passes. Others are refused unread, so that no pass chooses its algorithm.
  def head_of(alg, kid)
    Base64.urlsafe_encode64(%({"alg":"#{alg}","typ":"JWT","kid":"#{kid}"}), padding: false)
  end

  # Keys of what "anteroom key pass --edge NAME" shows, for rooms with pass_edge (HS256).
  def secrets(by_kid)
    by_kid.to_h do |kid, secret|
      good = lambda do |signed, signature|
        OpenSSL.secure_compare(OpenSSL::HMAC.digest("SHA256", secret, signed), signature)
      end
      [head_of("HS256", kid), good]
    end
  end

  # Keys of /.well-known/anteroom/pass.pem (ES256).
  def pem(text)
    text.scan(/kid: (\S+)\s+(-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----)/m).to_h do |kid, key|
      public_key = OpenSSL::PKey.read(key)
      good = lambda do |signed, signature|
        numbers = signature.unpack("a32a32").map { |number| OpenSSL::ASN1::Integer(OpenSSL::BN.new(number, 2)) }
        signature.bytesize == 64 && public_key.verify("SHA256", OpenSSL::ASN1::Sequence(numbers).to_der, signed)
      end
      [head_of("ES256", kid), good]
    end
  end

  # What the pass in a Cookie header says, or nil if there is no good one.
  def verify(cookies, keys, zone:, room:, issuer: "anteroom", name: "__anteroom_pass", now: Time.now.to_i)
    found = cookies.split(";").map(&:strip).select { |pair| pair.start_with?("#{name}=") }
    return unless found.length == 1

    pass = found[0].delete_prefix("#{name}=")
    head, payload, signature, more = pass.split(".", -1)
    return if pass.bytesize > 1024 || signature.nil? || more || !keys.key?(head)
    return unless keys[head].call("#{head}.#{payload}", Base64.urlsafe_decode64(signature))

    c = JSON.parse(Base64.urlsafe_decode64(payload))
    wanted = c["use"] == "pass" && c["iss"] == issuer && c["aud"] == zone && c["room"] == room && !c["sid"].to_s.empty?
    c if wanted && c["nbf"] <= now && now < c["exp"]
  rescue ArgumentError, JSON::ParserError, OpenSSL::PKey::PKeyError
    nil
  end
end

if $PROGRAM_NAME == __FILE__
  vectors = JSON.parse(File.read(ARGV[0]))
  keys = {
    "HS256" => AnteroomPass.secrets(vectors["secrets"].to_h { |s| [s["kid"], s["secret"]] }),
    "ES256" => AnteroomPass.pem(vectors["pem"]),
  }
  cases = vectors["cases"].select { |one| keys.key?(one["alg"]) }
  wrong = cases.reject do |one|
    claims = AnteroomPass.verify(one["cookie"], keys[one["alg"]], zone: vectors["audience"], room: vectors["room"], issuer: vectors["issuer"], now: vectors["now"])
    !claims.nil? == one["good"]
  end
  wrong.each { |one| puts "wrong: #{one["alg"]} #{one["name"]}" }
  puts "#{cases.length} vectors, #{wrong.length} wrong"
  exit(wrong.empty? && !cases.empty?)
end
